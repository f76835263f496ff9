"""The template of ``mma.sync``: its space, its sizes, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cuda.block_templates import BlockTemplateContract
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.cuda.mma.code import MmaCode
from tilewright.spaces.cuda.mma.sizes import MmaSizes
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload, workload_from_json
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.product import orient

ALONE = {"splits": 1, "raster": "along_columns", "raster_group": 8, "merge": "store"}


class TestMma(BlockTemplateContract):
    template, code, sizes = Mma, MmaCode, MmaSizes
    dtypes = ("float16", "bfloat16", "int8", "tfloat32")

    def known_good(self):
        tile = {"tile_rows": 64, "tile_columns": 32, "warp_rows": 2, "warp_columns": 4}
        ring = {"depth": 32, "stages": 3, "blocks_per_sm": 2, "store_path": "shared"}
        large = {"tile_rows": 64, "tile_columns": 64, "blocks_per_sm": 1, "stages": 4}
        return [
            ("float16", {**tile, **ring, **ALONE}),
            ("bfloat16", {**tile, **ring, **large, **ALONE}),
        ]


@pytest.mark.parametrize(
    ("parameters", "target", "words"),
    [
        ({}, "cpu", "CUDA"),
        ({"dtype": "float32"}, "sm_90a", "float32"),
        ({"dtype": "float64"}, "sm_90a", "float64"),
        ({"dtype": "float8_e4m3fn"}, "sm_80", "sm_80 lacks the instruction"),
    ],
)
def test_what_it_cannot_do_is_refused_in_words(parameters, target, words):
    work = workload("matmul", m=8, n=8, k=8, **parameters)
    hardware = detect_cpu() if target == "cpu" else cuda_target(target)
    assert words in (Mma.refuses(work, hardware) or "")


@pytest.mark.parametrize(
    ("dtype", "k", "a", "asynchronous"),
    [
        ("float16", 64, "row", True),  # 16 bytes at a time
        ("float16", 66, "row", True),  # 4 bytes
        ("float16", 65, "row", False),  # rows start anywhere
        ("float16", 65, "col", True),  # ldmatrix transposes
        ("int8", 64, "row", True),
        ("int8", 64, "col", False),  # to be put crosswise
        ("tfloat32", 65, "row", True),
        ("tfloat32", 64, "col", False),
    ],
)
def test_tiles_pass_registers_only_where_copies_cannot_be_asynchronous(dtype, k, a, asynchronous):
    product = orient(workload("matmul", m=64, n=64, k=k, dtype=dtype, a=a).matmul)
    values = {"tile_rows": 32, "tile_columns": 32, "warp_rows": 1, "warp_columns": 1}
    values |= {"depth": 64, "stages": 2, "blocks_per_sm": 1, "store_path": "direct", **ALONE}
    assert MmaCode(MmaSizes(product), values, "tw_test").left.can_be_asynchronous == asynchronous
    assert MmaSizes(product).passes_registers(product.left) != asynchronous


def test_a_warp_reads_its_rows_and_columns_once_a_term():
    space = space_for(workload("matmul m=1024 n=1024 k=512 dtype=float16"), cuda_target("sm_80"))
    rows = space.sample(np.random.default_rng(0), 200)
    found = space.quantities(rows)
    for i, schedule in enumerate(map(space.schedule, rows)):
        if schedule.template == "mma":
            high, wide = (int(schedule[name]) for name in ("tile_rows", "tile_columns"))
            intensity = high * wide / (high + wide)  # 2 FLOPs of 2 bytes each
            assert found["flops"][i] / found["register_bytes"][i] == pytest.approx(intensity)


def test_sums_are_float16_only_if_asked_for():
    values = {"tile_rows": 32, "tile_columns": 32, "warp_rows": 1, "warp_columns": 1}
    values |= {"depth": 64, "stages": 2, "blocks_per_sm": 1, "store_path": "direct", **ALONE}

    def source(**options: str) -> str:
        work = workload("matmul", m=64, n=64, k=64, dtype="float16", **options)
        return MmaCode(MmaSizes(orient(work.matmul)), values, "tw_test").source

    assert "mma_m16n8k16_f32_f16_f16" in source()
    assert "mma_m16n8k16_f16_f16_f16" in source(accumulator="float16")
    assert source(accumulator="float32") == source()


def test_an_accumulator_is_named_only_where_it_is_not_the_usual_one():
    sizes = {"m": 8, "n": 8, "k": 8}
    usual = workload("matmul", **sizes, dtype="float16")
    assert "accumulator" not in usual.key
    assert workload("matmul", **sizes, dtype="float16", accumulator="float32") == usual
    short = workload("matmul", **sizes, dtype="float16", accumulator="float16")
    assert short != usual
    assert workload_from_json(short.to_json()) == short
    with pytest.raises(InputError, match="accumulator='float16' is not for float32; allowed"):
        workload("matmul", **sizes, accumulator="float16")


def test_tf32_is_never_meant_by_float32():
    values = np.array([[1 + 2**-11, 1 + 2**-12, -1 - 2**-11, np.inf]])
    work = workload("matmul", m=1, n=4, k=4, dtype="tfloat32")
    assert work.outputs[0].dtype == "float32"
    rounded = work.matmul.factors[0].array(values)
    assert rounded.dtype == np.float32
    assert rounded.tolist() == [[1 + 2**-10, 1, -1 - 2**-10, np.inf]]
    with pytest.raises(InputError, match="inputs only"):
        workload("matmul", m=8, n=8, k=8, out="tfloat32")
