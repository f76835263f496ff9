from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.spaces.cuda.target import FEATURES, CudaTarget, cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import detect_target, target_from_json

NAMES = ["sm_80", "sm_86", "sm_89", "sm_90a"]


@pytest.mark.parametrize("name", NAMES)
def test_named_targets_need_no_device_and_survive_json(name):
    target = detect_target(f"cuda:{name}")
    assert isinstance(target, CudaTarget)
    assert target_from_json(json.loads(json.dumps(target.to_json()))) == target
    assert name in target.summary


def test_fingerprints_tell_targets_apart():
    assert len({cuda_target(name).fingerprint for name in NAMES}) == len(NAMES)


def test_capability_and_features():
    assert [cuda_target(name).capability for name in NAMES] == [(8, 0), (8, 6), (8, 9), (9, 0)]
    assert [cuda_target(name).has("wgmma") for name in NAMES] == [False, False, False, True]
    assert [cuda_target(name).has("mma_fp8") for name in NAMES] == [False, False, True, True]
    assert all(cuda_target("sm_90a").has(feature) for feature in FEATURES)
    with pytest.raises(ValueError, match="unknown feature"):
        cuda_target("sm_80").has("tensor cores")


@pytest.mark.parametrize(
    ("name", "dtype", "tensor", "teraflops"),
    [  # the vendor's data sheets, dense
        ("sm_80", "float32", False, 19.5),
        ("sm_80", "bfloat16", True, 312),
        ("sm_80", "int8", True, 624),
        ("sm_86", "float32", False, 31.2),
        ("sm_89", "float16", True, 362),
        ("sm_89", "float32", False, 91.6),
        ("sm_90a", "float32", False, 67),
        ("sm_90a", "float64", False, 34),
    ],
)
def test_peaks_are_those_of_the_data_sheets(name, dtype, tensor, teraflops):
    assert cuda_target(name).peak(dtype, tensor) / 1e12 == pytest.approx(teraflops, rel=0.03)


def test_shared_memory_of_a_block_leaves_a_kibibyte_to_the_system():
    for name in NAMES:
        target = cuda_target(name)
        assert target.shared_per_multiprocessor - target.shared_per_block == 1024


def test_unknown_hardware_is_refused_with_what_is_known():
    with pytest.raises(InputError, match=r"sm_75.*allowed: sm_80, sm_86, sm_89, sm_90a"):
        detect_target("cuda:sm_75")


def test_a_malformed_description_is_refused():
    data = cuda_target("sm_80").to_json()
    del data["l2_bytes"]
    with pytest.raises(InputError, match="malformed"):
        target_from_json(data)


def test_without_a_device_the_error_says_what_to_install_and_what_works_without():
    if gpu_is_here():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match=r"tilewright\[cuda\].*cuda:sm_90a"):
        detect_target("cuda")


def test_a_gpu_is_detected():
    if not gpu_is_here():
        pytest.skip("there is no GPU")
    target = detect_target("cuda")
    assert isinstance(target, CudaTarget)
    assert target.multiprocessors > 0


def gpu_is_here() -> bool:
    return Path("/proc/driver/nvidia/gpus").exists()
