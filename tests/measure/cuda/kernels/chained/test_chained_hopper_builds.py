"""Chained kernels compiled for sm_90a: no spills, and products that run beside the chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pytest

from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count, in_order
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

HOPPER = cuda_target("sm_90a")
GOOD: dict[str, Value] = {
    "warpgroups": 3, "blocks_per_sm": 1, "keys": 80, "overlap": 1, "chain_overlap": 1,
    "query_storage": "shared",
    "tile_scheduler": "persistent", "query_buffers": 2, "stages": 2, "ping_pong": 1,
    "rescale": "late",
    "head_group": 1, "splits": 1, "merge": "last", "skip_per_warpgroup": 0,
}  # fmt: skip
LOW = {"warpgroups": 2, "keys": 128, "query_storage": "registers"}
LONG = {"b": 1, "h": 16, "i": 4096, "j": 4096, "d": 128, "dtype": "bfloat16"}
WORKLOADS = [
    workload("attention", **LONG | changes)
    for changes in (
        {},
        {"mask": "causal"},
        {"d": 64, "dtype": "float16", "mask": "causal", "kv": 4},
        {"mask": "causal", "window": 512, "softcap": 20.0, "kv": 4},
        {"mask": "causal", "alibi": 1},
    )
]


SHORT = workload(
    "qs: float32[h]\nks: float32[h]\ny: bfloat16[b,h,i,e]\ny[b,h,i,e] = sum[j](softmax[j]("
    "sum[d](q[b,h,i,d] * k[b,h,j,d]) * qs[h] * ks[h] * 0.0884) * v[b,h,j,e])",
    b=1, h=16, i=4096, j=4096, d=128, e=128, dtype="float8_e4m3fn",
)  # fmt: skip
ROOMY: dict[str, Value] = {"warpgroups": 2, "keys": 128, "rescale": "moved"}


def candidate(w: Workload, schedule: Schedule) -> Candidate:
    space = Space(w, HOPPER, [ChainedHopper(w, HOPPER)])
    return Candidate(Job("test", w, HOPPER), schedule, space.lower(schedule))


def good(w: Workload, **changes: Value) -> Candidate:
    return candidate(w, Schedule("chained_hopper", tuple((GOOD | changes).items())))


def codes(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, bytes]]:
    """The machine code of each."""
    builder = NvrtcBuilder(HOPPER, jobs=2)
    try:
        for built in builder.build(candidates):
            assert built.binary is not None, (built.candidate.schedule, built.error_text)
            entry = built.candidate.kernel.call.entry
            yield built.candidate, read_cubin(built.binary.read_bytes(), entry).code
    finally:
        builder.close()


def test_exponentials_run_while_sums_are_multiplied():
    """In the loop, between the wait for scores and the one for sums, and nothing spills."""
    chosen = [
        good(WORKLOADS[0]),
        good(WORKLOADS[1], **LOW, skip_per_warpgroup=1, tile_scheduler="tickets"),
    ]
    for made, code in codes(chosen):
        names = in_order(code)
        for_scores = names.index("WAIT 1")
        for_sums = names.index("WAIT 0", for_scores)
        between = Counter(names[for_scores:for_sums])
        keys = made.schedule["keys"]
        assert keys // 2 <= between["MUFU"] <= keys // 2 + 4, made.schedule
        assert not between["HGMMA"], made.schedule
        assert not count(code)["LDL"] + count(code)["STL"], made.schedule


def test_float8_is_multiplied_beside_the_chain_without_a_spill():
    for made, code in codes(
        [good(SHORT, **ROOMY), good(SHORT, **ROOMY | {"keys": 96, "query_storage": "registers"})]
    ):
        names, keys = in_order(code), made.schedule["keys"]
        for_scores = names.index("WAIT 1")
        between = Counter(names[for_scores : names.index("WAIT 0", for_scores)])
        assert not between["QGMMA"], made.schedule
        assert between["FMNMX"] >= keys // 3, made.schedule
        assert count(code)["QGMMA"] == 2 * (128 + keys) // 32, made.schedule
        assert not count(code)["LDL"] + count(code)["STL"], made.schedule


def test_maxima_are_found_while_sums_are_multiplied():
    chosen = [good(w, **LOW, chain_overlap=2, rescale="always") for w in WORKLOADS[:2]]
    for made, code in codes(chosen):
        names, keys = in_order(code), made.schedule["keys"]
        for_scores = names.index("WAIT 1")
        between = Counter(names[for_scores : names.index("WAIT 0", for_scores)])
        assert between["FMNMX"] >= keys // 2, made.schedule


SHARED = {
    "warpgroups": 2, "keys": 128, "chain_overlap": 0, "tile_scheduler": "grid", "query_buffers": 1,
    "ping_pong": 0, "merge": "cluster",
}  # fmt: skip


@pytest.mark.parametrize("split", [2, 8])
def test_blocks_of_a_cluster_send_their_parts_and_wait_for_no_fence(split):
    """One store of four sums for each two columns of two rows, and one of states of each row."""
    work = workload("attention", **LONG | {"i": 1, "b": 16, "h": 128, "kv": 1})
    ((_, code),) = codes([good(work, **SHARED, splits=split)])
    found = count(code)
    assert found["STAS"] == 16 + 2 * split
    assert not found["MEMBAR.GPU"]


def spilling(each: int, seed: int) -> tuple[int, list[Schedule]]:
    """How many random schedules were compiled, and those whose registers do not suffice."""
    chosen = []
    for number, w in enumerate(WORKLOADS):
        space = Space(w, HOPPER, [ChainedHopper(w, HOPPER)])
        drawn = space.sample(np.random.default_rng([seed, number]), each)
        chosen += [candidate(w, space.schedule(row)) for row in drawn]
    with closing(NvrtcBuilder(HOPPER, jobs=2)) as builder:
        failed = [built for built in builder.build(chosen) if built.binary is None]
    assert all("spills" in str(built.error_text) for built in failed), failed
    found = [built.candidate.schedule for built in failed]
    return len(chosen), found


@pytest.mark.slow
def test_rules_foresee_most_spills():
    compiled, found = spilling(16, 0)
    print(f"{len(found)} of {compiled} spill: {found}")
    assert compiled == 16 * len(WORKLOADS)
    assert len(found) <= compiled // 10
