"""Hopper kernels compiled for sm_90a: no spills, no lost setmaxnreg, wgmma and TMA in the code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.measure.cuda.kernels.hopper.hopper_problems import sample
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.cuda.warpgroups import launch_registers
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Value
from tilewright.spaces.space import Space

HOPPER = cuda_target("sm_90a")
FUSED = "gelu(x + bias[n]) + r[m, n]"
WORKLOADS = [
    workload("matmul", **parameters)
    for parameters in (
        {"m": 8192, "n": 8192, "k": 8192, "dtype": "bfloat16"},
        {"m": 4096, "n": 4096, "k": 4096, "dtype": "float16", "b": "col", "epilogue": FUSED},
        {"m": 2048, "n": 2048, "k": 2048, "dtype": "bfloat16", "a": "col", "c": "col"},
        {"m": 64, "n": 14336, "k": 4096, "dtype": "bfloat16", "b": "col", "epilogue": FUSED},
        {"m": 32, "n": 4096, "k": 14336, "dtype": "float16", "out": "float32"},
        {"m": 4096, "n": 4096, "k": 4096, "dtype": "float8_e4m3fn", "b": "col"},
        {"m": 64, "n": 4096, "k": 8192, "dtype": "bfloat16", "b": "col"},
        {"m": 2042, "n": 2042, "k": 2048, "dtype": "bfloat16", "b": "col", "epilogue": FUSED},
    )
]
EACH = [1, pytest.param(3, marks=pytest.mark.slow)]


def drawn(each: int, seed: int, given: Mapping[str, Value] | None = None) -> list[Candidate]:
    """``each`` random schedules of each workload that has such with the decisions ``given``."""
    found = []
    for number, made in enumerate(WORKLOADS):
        space = Space(made, HOPPER, [Hopper(made, HOPPER)])
        generator = np.random.default_rng([seed, number])
        schedules = [space.schedule(row) for row in sample(space, generator, each, given or {})]
        found += [Candidate(Job("test", made, HOPPER), s, space.lower(s)) for s in schedules]
    return found


def check(candidates: list[Candidate], further: Callable[[Built], None] = lambda one: None) -> None:
    """All build without a refusal, into the instructions they are meant to be; ``further`` checks
    each."""
    builder = NvrtcBuilder(HOPPER, jobs=2)
    try:
        built = builder.build(candidates)
        refused = [f"{b.candidate.schedule}: {b.error_text}" for b in built if b.error_kind]
        assert not refused, "\n".join(refused)
        for one in built:
            check_code(one.candidate, instructions(one))
            further(one)
    finally:
        builder.close()


def instructions(built: Built) -> Counter[str]:
    assert built.binary is not None
    return count(read_cubin(built.binary.read_bytes(), built.candidate.kernel.call.entry).code)


def check_code(candidate: Candidate, found: Counter[str]) -> None:
    schedule, kind = candidate.schedule, candidate.job.workload.matmul.factors[0].dtype
    assert found["QGMMA" if kind.startswith("float8") else "HGMMA"], schedule
    assert found["UTMALDG"] >= 2, schedule
    assert not found["LDL"] + found["STL"], schedule
    exchanges = schedule["merge"] == "cluster"
    if schedule["splits"] == 1 or exchanges:  # blocks that share no sums through global memory
        assert not found["MEMBAR.GPU"], schedule
    # each thread sends four sums at a time, and passes over those of its own slice
    vectors = schedule["block_m"] * schedule["block_n"] // schedule["consumers"] // 512
    assert found["STAS"] == exchanges * vectors, schedule
    assert bool(found["UTMASTG"]) == (schedule["store_buffers"] != 0), schedule
    if schedule["store_buffers"] and candidate.job.workload.outputs[0].element.bytes == 2:
        assert found["STSM"], schedule


@pytest.mark.parametrize("each", EACH)
def test_random_schedules_build(each):
    check(drawn(each, 1))


@pytest.mark.parametrize("each", EACH)
def test_exchanges_in_clusters_build(each):
    found = drawn(each, 1, {"merge": "cluster"})
    assert len(found) >= 2 * each
    assert all("atomic_add" not in candidate.kernel.source.body for candidate in found)
    check(found)


def test_two_blocks_find_registers_on_a_multiprocessor():
    def registers_suffice(one: Built) -> None:
        kernel = one.candidate.kernel
        assert one.binary is not None
        taken = read_cubin(one.binary.read_bytes(), kernel.call.entry).registers
        threads = kernel.call.launches[0].block[0]
        assert taken <= launch_registers(threads, 2), one.candidate.schedule

    found = drawn(1, 1, {"blocks_per_sm": 2})
    assert len(found) >= 4
    check(found, registers_suffice)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_hundreds_of_random_schedules_build(seed):
    check(drawn(8, seed))
