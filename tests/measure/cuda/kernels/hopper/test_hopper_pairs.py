"""Two products in one Hopper kernel: random schedules, planted bugs, and what NVRTC makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cuda.hopper_pairs.template import HopperPairs
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

HOPPER = cuda_target("sm_90a")
TEXTS = {
    "gated": "gated_matmul m=72 n=136 k=72 dtype=bfloat16",
    "gated, few rows": "gated_matmul m=5 n=264 k=136 dtype=float16",
    "along the depth, with others beside": '"y[i,j] = silu(sum[k](a[i,k] * g[j,k]) + b[j]) * '
    'sum[k](a[i,k] * u[j,k]) + r[i,j]" i=130 j=72 k=136 dtype=float16',
}


def space_of(text: str) -> Space:
    work = workload(text)
    return Space(work, HOPPER, [HopperPairs(work, HOPPER)])


def cases(name: str, count: int) -> list[Case]:
    space = space_of(TEXTS[name])
    rows = space.sample(np.random.default_rng(0), count)
    return [(space.workload, space.lower(space.schedule(row))) for row in rows]


def made(name: str, **decisions: object) -> Case:
    """The kernel of a schedule that has these decisions, beside others at random."""
    space = space_of(TEXTS[name])
    schedules = map(space.schedule, space.sample(np.random.default_rng(0), 4096))

    def fits(schedule: Schedule) -> bool:
        return all(schedule[key] == value for key, value in decisions.items())

    return space.workload, space.lower(next(filter(fits, schedules)))


CASES = {f"{name}, {n}": case for name in TEXTS for n, case in enumerate(cases(name, 5))}
PLAIN = {"cluster": "1x1", "splits": 1, "schedule": "cooperative"}
BROKEN = {
    "plain": made("gated", store_buffers=0, block_n=64, **PLAIN),
    "staged": made("gated", store_buffers=2, block_n=64, **PLAIN),
    "deep": made("along the depth, with others beside", block_n=64, store_buffers=0, **PLAIN),
    "shared": made("gated", cluster="2x1", splits=1),
    "split": made("gated", cluster="1x1", splits=2),
}
OTHER = r"(tw_silu\(sums.*?) \+ 16\]"
BUGS = {
    "a tile is loaded over its twin": ("plain", r" \+ \d+, &twin_map", ", &twin_map"),
    "the twin's columns begin elsewhere": ("plain", "(&twin_map, barrier, n0)", r"\1 + 8"),
    "both halves are of one matrix": ("plain", "&twin_map, barrier", "&n_map, barrier"),
    "the other sum is of the next column": ("plain", OTHER, r"\1 + 17]"),
    "the other sum is the same": ("staged", OTHER, r"\1]"),
    "outputs go on as the tile is wide": (
        "plain",
        r"column0 = \(int\)tile_column \* 32",
        "column0 = (int)tile_column * 64",
    ),
    "loads go on as the tile is wide": ("deep", r"n0 = tile_column \* 32", "n0 = tile_column * 64"),
    "a block loads the share of another": (
        "shared",
        r"(&twin_map.*?)\(int\)rank",
        r"\1(int)(1 - rank)",
    ),
    "parts leave out the twin's sums": ("split", r"(?s)(tw::atomic_add.*?sums\[0\])\[8", r"\1[0"),
}


class TestHopperPairs(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


@pytest.mark.parametrize("m", [16, 4096])
def test_large_kernels_build_without_spills(m):
    space = space_of(f"gated_matmul m={m} n=14336 k=4096 dtype=bfloat16")
    schedules = map(space.schedule, space.sample(np.random.default_rng(m), 3))
    job = Job("test", space.workload, HOPPER)
    builder = NvrtcBuilder(HOPPER, jobs=1)
    try:
        for built in builder.build([Candidate(job, s, space.lower(s)) for s in schedules]):
            assert built.binary is not None, built.error_text
            entry = built.candidate.kernel.call.entry
            found = count(read_cubin(built.binary.read_bytes(), entry).code)
            assert found["HGMMA"]
            assert found["UTMALDG"] >= 3
            assert not found["LDL"] + found["STL"], built.candidate.schedule
    finally:
        builder.close()
