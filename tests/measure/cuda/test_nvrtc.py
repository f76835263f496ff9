"""The builder: its contract, its refusals, its cache, and what it reads from a cubin."""

from __future__ import annotations

import re
import threading

import pytest

from tests.kernels import rewritten, written
from tests.measure.cuda.example_kernels import hopper, simt, tensor_core
from tilewright.measure.cuda import nvrtc
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count
from tilewright.measure.host.cache import CachedFile
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job
from tilewright.measure.testing.builder import BuilderContract
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.kernel import Kernel, Launch
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule

HOPPER, AMPERE = cuda_target("sm_90a"), cuda_target("sm_80")
WORK = workload("matmul", m=16, n=16, k=16)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Each test compiles afresh and leaves nothing in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tilewright" / "cubins"


def candidate(made: Kernel, target=HOPPER) -> Candidate:
    return Candidate(Job("test", WORK, target), Schedule("by hand", ()), made)


def kernel(entry: str, body: str, threads: int = 128, shared: int = 0, bounds: str = "") -> Kernel:
    bounds = bounds or f"__launch_bounds__({threads}, 1)"
    source = f'extern "C" __global__ void {bounds} {entry}(float *out) {{ {body} }}'
    launch = Launch((1, 1, 1), (threads, 1, 1), (1, 1, 1), shared)
    return written("cuda", entry, source, launch=launch)


def build(made: Kernel, target=HOPPER, **options) -> Built:
    builder = NvrtcBuilder(target, **options)
    try:
        [built] = builder.build([candidate(made, target)])
        if built.binary is not None:
            assert built.binary.read_bytes()[:4] == b"\x7fELF"
        return built
    finally:
        builder.close()


class TestNvrtcBuilder(BuilderContract):
    def make(self):
        return NvrtcBuilder(HOPPER, jobs=2)

    def good(self, name):
        return candidate(kernel(name, f"out[threadIdx.x] = {len(name)};"))

    def broken(self, name):
        return candidate(kernel(name, "undeclared();"))


def test_resources_come_with_the_binary():
    built = build(hopper().kernel)
    assert built.error_kind is None, built.error_text
    assert built.info is not None
    assert built.info["registers"] == 168  # 65536 / 384 threads, in steps of 8: for setmaxnreg
    assert built.info["spill_bytes"] == built.info["stack_bytes"] == 0
    assert built.info["shared_bytes"] == 3 * 24576 + 16384 + 48
    assert built.info["barriers"] >= 3
    assert built.info["compiler"].startswith("nvrtc 1")


SPILLS = """
  float x[128];
  for (int i = 0; i < 128; i++) x[i] = out[i * threadIdx.x];
  for (int j = 0; j < 50; j++) {
    for (int i = 0; i < 128; i++) x[i] = x[i] * x[(i + 1) % 128] + out[j * i];
    tw::sync_block();
  }
  for (int i = 0; i < 128; i++) out[i * 1024 + threadIdx.x] = x[i];"""
SERIAL = """
  const u64 s = tw::wgmma_descriptor<128>(tw::shared_base(), 16, 1024);
  float d[64];
  tw::wgmma_fence();
  tw::wgmma_m64n128k16_f32_bf16_bf16_ss(d, s, s, 0);
  for (int i = 0; i < 64; i++) d[i] *= 2;
  tw::wgmma_m64n128k16_f32_bf16_bf16_ss(d, s, s, 1);
  tw::wgmma_commit();
  tw::wgmma_wait<0>();
  for (int i = 0; i < 64; i++) out[i * 128 + threadIdx.x] = d[i];"""
REFUSED = {
    "spills": (kernel("spills", SPILLS, 1024), r"spills \d+ bytes"),
    "setmaxnreg ignored": (
        kernel("ignored", "tw::registers_up<240>(); out[0] = 1;", bounds=" "),
        "C7508.*setmaxnreg",
    ),
    "wgmma serialised": (kernel("serial", SERIAL), "C75.*wgmma"),
    "shared memory": (
        kernel("shared", "out[0] = tw::load_shared<float>(tw::shared_base());", shared=232449),
        "232449 bytes of shared memory of 232448 allowed",
    ),
    "static shared memory": (
        kernel(
            "static_shared",
            "__shared__ float x[256]; x[threadIdx.x] = out[threadIdx.x]; __syncthreads();"
            " out[0] = x[threadIdx.x ^ 1] + tw::load_shared<float>(tw::shared_base());",
            shared=232448 - 512,
        ),
        "of 232448 allowed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_poor_kernels_are_rejected_with_the_reason(name):
    made, words = REFUSED[name]
    built = build(made)
    assert built.error_kind is ErrorKind.REJECTED
    assert built.binary is None
    assert re.search(words, built.error_text), built.error_text


def test_rejections_keep_the_resources_for_the_cost_model():
    info = build(REFUSED["spills"][0]).info
    assert info is not None
    assert info["spill_bytes"] > 0
    assert info["registers"] == 64


def test_too_many_registers_for_a_block_are_rejected():
    body = SPILLS.replace("1024", "512")
    made = kernel("wide", body, threads=512, bounds="__launch_bounds__(128, 1)")
    assert build(made).error_kind is ErrorKind.REJECTED
    assert "registers of 65536" in build(made).error_text


def test_an_intrinsic_that_does_not_exist_is_a_compile_error():
    built = build(kernel("odd", "tw::wgmma_m64n12k16_f32_f16_f16_ss(d, a, b, 0);"))
    assert built.error_kind is ErrorKind.COMPILE
    assert "wgmma_m64n12k16" in built.error_text


ENDLESS = "float s = 0;" + "".join(
    f"s += out[{i}] * sinf(s * {i}.f + out[{i + 1}]); if (s > {i}) s = out[(int)s];"
    for i in range(4000)
)


def test_a_compilation_that_takes_too_long_is_stopped():
    built = build(kernel("endless", ENDLESS + "out[0] = s;"), time_limit=0.5)
    assert built.error_kind is ErrorKind.COMPILE_TIMEOUT
    assert "0.5 s" in built.error_text


def test_close_stops_what_is_under_way(monkeypatch):
    builder = NvrtcBuilder(HOPPER, time_limit=600)
    under_way = threading.Event()

    def watched(text, architecture, time_limit, cancelled):
        def asked():
            under_way.set()
            return cancelled()

        return compile_cubin(text, architecture, time_limit, asked)

    def work():
        builder.build([candidate(kernel("endless", ENDLESS + "out[0] = s;"))])

    monkeypatch.setattr(nvrtc, "compile_cubin", watched)
    thread = threading.Thread(target=work)
    thread.start()
    assert under_way.wait(200)
    builder.close()
    thread.join(timeout=200)
    assert not thread.is_alive()


def test_a_second_build_comes_from_the_cache(own_cache, monkeypatch):
    made = simt().kernel
    first = build(made)
    assert len(list(own_cache.iterdir())) == 1

    def fail(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvrtc, "compile_cubin", fail)
    assert build(made).info == first.info
    changed = rewritten(made, made.source.body + "\n// another text")
    with pytest.raises(AssertionError, match="compiled again"):
        build(changed)
    with pytest.raises(AssertionError, match="compiled again"):
        build(made, target=AMPERE)


def test_a_damaged_cubin_is_compiled_again(own_cache):
    made = simt().kernel
    first = build(made)
    (kept,) = own_cache.iterdir()
    whole = kept.read_bytes()
    flipped = whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:]
    for damage in (b"", b"12\nnot sealed", whole[:2000], flipped):
        kept.write_bytes(damage)
        assert build(made).info == first.info
        assert CachedFile("cubins", kept.name).read() is not None, "it is whole again"


def test_a_cache_that_nobody_may_use_is_no_fault_of_a_kernel(own_cache):
    builder = NvrtcBuilder(HOPPER)
    own_cache.parent.chmod(0o777)
    [built] = builder.build([candidate(simt().kernel)])
    builder.close()
    assert built.error_kind is ErrorKind.COMPILER_LOST
    assert "cannot compile: everybody can write to the cache folder" in built.error_text


def test_a_cubin_is_read_for_every_architecture():
    for target in (AMPERE, cuda_target("sm_86"), cuda_target("sm_89"), HOPPER):
        info = build(tensor_core().kernel, target).info
        assert info is not None
        assert 40 < info["registers"] <= 255
        assert info["barriers"] == 1
        assert info["shared_bytes"] == 3 * 8192


def test_what_is_no_cubin_is_refused():
    with pytest.raises(ValueError, match="no cubin"):
        read_cubin(b"MZ", "k")


# ---------------------------------------------------------------- machine code


def instructions(made: Kernel, target=HOPPER):
    builder = NvrtcBuilder(target)
    [built] = builder.build([candidate(made, target)])
    assert built.binary is not None, built.error_text
    found = count(read_cubin(built.binary.read_bytes(), made.call.entry).code)
    builder.close()
    return found


def test_the_hopper_example_uses_tma_and_wgmma_and_no_local_memory():
    found = instructions(hopper().kernel)
    assert found["HGMMA"] >= 4  # a stage's K, if the loop is rolled
    assert found["UTMALDG"] >= 2
    assert found["UTMASTG"] >= 1
    assert found["STSM"] == 4
    assert found["LDL"] == found["STL"] == found["HMMA"] == 0


@pytest.mark.parametrize("target", [AMPERE, HOPPER], ids=lambda t: t.name)
def test_the_tensor_core_example_copies_16_bytes_at_a_time(target):
    found = instructions(tensor_core().kernel, target)
    assert found["HMMA"] > 0
    assert found["LDSM"] > 0
    assert found["LDGSTS"] == found["LDGSTS.128"] > 0
    assert found["STG"] == found["STG.64"] > 0
    assert found["LDL"] == found["STL"] == 0


def test_the_simt_example_reads_shared_memory_16_bytes_at_a_time():
    found = instructions(simt().kernel)
    assert found["LDS"] == found["LDS.128"] > 0
    assert found["STG"] == found["STG.128"] == 4
    assert found["FFMA"] >= 128


def test_spills_are_local_memory():
    made = kernel("spilled", SPILLS, 1024)
    text = nvrtc.device_text(made.source.text) + made.source.text
    cubin = compile_cubin(text, "sm_90a", 60, lambda: False).cubin
    assert cubin is not None
    found = count(read_cubin(cubin, "spilled").code)
    assert found["STL"] > 0
    assert found["LDL"] > 0


def test_the_compiler_contracts_nothing_by_itself():
    head = 'extern "C" __global__ void kernel(float *x)'
    for value, fused in (("x[1] * x[2] - x[3]", 0), ("__fmaf_rn(x[1], x[2], x[3])", 1)):
        text = f"{head} {{ x[0] = {value}; }}"
        cubin = compile_cubin(text, "sm_90a", 60.0, lambda: False).cubin
        assert cubin is not None
        assert count(read_cubin(cubin, "kernel").code)["FFMA"] == fused
