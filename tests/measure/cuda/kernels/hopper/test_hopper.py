"""Hopper kernels on the emulator, in any order of events: right as generated, caught if broken."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import output_of
from tests.measure.cuda.kernels.hopper.hopper_cases import CHOSEN, FETCH, SIZES, TURNS
from tests.measure.cuda.kernels.hopper.hopper_problems import (
    LATE,
    START,
    USUAL,
    Problem,
    ProblemContract,
    check_drawn,
    drawn,
    small_target,
)
from tilewright.measure.cuda.emulator import verify
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


@pytest.mark.parametrize("seed", range(2))
def test_random_schedules_agree_with_the_reference(emulator, seed):
    check_drawn(emulator, drawn(4, seed, each=2), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_random_schedules_agree_with_the_reference(emulator, seed):
    check_drawn(emulator, drawn(40, seed), seed)


PLAIN = Problem({**SIZES, "k": 600, "epilogue": "x + bias[n]"}, {"stages": 3}, 1)
CLUSTER = Problem({**SIZES, "k": 600}, {"cluster": "2x1", "store_buffers": 2, "block_n": 64})
TAKING_TURNS = Problem({**SIZES, "k": 600}, {**TURNS, "in_flight": 1}, 1)
SHARED = Problem({**SIZES, "k": 600}, {"splits": 2, "store_buffers": 0}, 3)
APART = Problem({**SIZES, "k": 600}, {"splits": 2, "store_buffers": 0}, 4)  # parts in unlike blocks
SLOW = "  if (threadIdx.x / 32 == 8) for (int i = 0; i < 20; i++) tw::sync_warp();\n" + START
DRAIN = "      for (int i = 0; "
FETCHED = Problem(
    {**SIZES, "n": 256, "k": 64, "epilogue": "relu(x + r[m, n])"}, {**FETCH, "block_n": 64}, 1
)
DEEP = Problem({**SIZES, "b": "col", "k": 600}, {"depth": 128, "block_n": 64, "stages": 2})
# problem, what is replaced (wherever it stands), by what, and so on
BUGS = {
    "multiplies before the stage is full": (
        PLAIN,
        "tw::mbarrier_wait(full + 8 * stage, phase);",
        "",
    ),
    "loads before the stage is empty": (
        PLAIN,
        "tw::mbarrier_wait(empty + 8 * stage, phase ^ 1);",
        "",
    ),
    "waits for the other phase to fill": (
        PLAIN,
        "full + 8 * stage, phase",
        "full + 8 * stage, phase ^ 1",
    ),
    "waits for the other phase to empty": (PLAIN, "phase ^ 1);", "phase);"),
    "never turns the phase": (PLAIN, "stage = 0; phase ^= 1;", "stage = 0;"),
    "a stage too many": (PLAIN, "++stage == 3", "++stage == 4"),
    "a stage too few for loading": (
        PLAIN,
        "depth0);\n          if (++stage == 3)",
        "depth0);\n          if (++stage == 2)",
    ),
    "expects too few bytes": (
        PLAIN,
        "arrive_expect(barrier, 32768)",
        "arrive_expect(barrier, 16384)",
    ),
    "expects too many bytes": (
        PLAIN,
        "arrive_expect(barrier, 32768)",
        "arrive_expect(barrier, 32784)",
    ),
    "another swizzle": (
        PLAIN,
        "wgmma_descriptor<128>(at + group",
        "wgmma_descriptor<64>(at + group",
    ),
    "half the stride between groups of rows": (PLAIN, "8192, 16, 1024)", "8192, 16, 512)"),
    "steps too far along the depth": (PLAIN, "m_tile + 2 * k0", "m_tile + 4 * k0"),
    "multiplies a slab twice": (DEEP, "m_tile + 1024 * (k0 / 4)", "m_tile + 0 * (k0 / 4)"),
    "loads a slab twice": (DEEP, "depth0 + 64, m0", "depth0, m0"),
    "keeps the sums of the last tile": (PLAIN, "(step | k0) != 0", "1"),
    "releases the stage before the products are done": (
        PLAIN,
        "tw::wgmma_wait<0>();\n        if (lane == 0) tw::mbarrier_arrive(empty + 8 * stage);",
        "if (lane == 0) tw::mbarrier_arrive(empty + 8 * stage);\n        tw::wgmma_wait<0>();",
    ),
    "never releases": (PLAIN, "if (lane == 0) tw::mbarrier_arrive(empty + 8 * stage);", ""),
    "no commit": (PLAIN, "tw::wgmma_commit();", ""),
    "no wgmma fence": (PLAIN, "tw::wgmma_fence();", ""),
    "barriers not made visible": (PLAIN, "tw::fence_barrier_init();", ""),
    "does not wait for the ring to be made": (
        PLAIN,
        *("else tw::sync_named(15, 384);", "else tw::arrive_named(15, 384);"),
        *(START, SLOW),
    ),
    "each warpgroup waits for itself": (PLAIN, "(15, 384)", "(15, 128)", START, SLOW),
    "waits for all warps but one": (PLAIN, "(15, 384)", "(15, 352)", START, SLOW),
    "waits for fewer than report": (PLAIN, "sync_named(15, 384)", "sync_named(15, 352)"),
    "no predicate before an epilogue's load": (
        PLAIN,
        "if (column0",
        "if (true || column0",
    ),
    "writes the buffer before TMA has read it": (
        PLAIN,
        "if (thread == 0) tw::tma_wait_read<0>();\n",
        "\n",
    ),
    "one buffer fewer than stores in flight": (CLUSTER, "tma_wait_read<1>", "tma_wait_read<2>"),
    "stores before all have written": (
        CLUSTER,
        "tw::fence_async();\n        tw::sync_named(1 + group, 128);",
        "tw::fence_async();",
    ),
    "no fence before the store": (CLUSTER, "tw::fence_async();", ""),
    "does not wait for what is fetched": (
        FETCHED,
        "tw::mbarrier_wait(fetched, fetched_phase);",
        "",
    ),
    "never turns the phase of what is fetched": (FETCHED, "fetched_phase ^= 1;", ""),
    "fetches the tile of another warpgroup": (
        FETCHED,
        "&fetched_map, fetched, (int)(column0), (int)(row0)",
        "&fetched_map, fetched, (int)(column0), (int)(row0 ^ 64)",
    ),
    "fetches before TMA has read the last tile": (
        FETCHED,
        "  tw::tma_wait_read<0>();",
        "",
    ),
    "expects half of what is fetched": (
        FETCHED,
        "arrive_expect(fetched, 8192)",
        "arrive_expect(fetched, 4096)",
    ),
    "one barrier for all that is fetched": (FETCHED, "+ 8 * group;", "+ 0 * group;"),
    "staged without the swizzle": (CLUSTER, " ^ (8 * (lane % 8))", ""),
    "starts before the other block's barriers are there": (
        CLUSTER,
        *("  tw::cluster_arrive_relaxed();\n  tw::cluster_wait();\n", "  tw::sync_block();\n"),
        *(START, LATE),
    ),
    "ends before the other block's last reports": (CLUSTER, DRAIN + "i < 3;", DRAIN + "i < 0;"),
    "waits for all reports but the last": (CLUSTER, DRAIN + "i < 3;", DRAIN + "i < 2;"),
    "waits for reports on stages yet to be filled": (CLUSTER, DRAIN + "i < 3;", DRAIN + "i < 4;"),
    "casts to itself only": (CLUSTER, "barrier, 3, ", "barrier, 1 << rank, "),
    "casts the other half": (
        CLUSTER,
        "n0, depth0 + (int)rank * 32",
        "n0, depth0 + (int)(1 - rank) * 32",
    ),
    "releases its own block's stage twice": (CLUSTER, "8 * stage, lane)", "8 * stage, rank)"),
    "does not wait for the other block's release": (
        CLUSTER,
        "mbarrier_init(empty + 8 * i, 16)",
        "mbarrier_init(empty + 8 * i, 8)",
    ),
    "multiplies out of turn": (TAKING_TURNS, "tw::sync_named(3 + group, 256);", ""),
    "does not take its last turn": (
        TAKING_TURNS,
        "if (whose == group) tw::sync_named(3 + group, 256);",
        "",
    ),
    "no fence before the ticket": (
        APART,
        "tw::fence_global();\n      tw::sync_named(1",
        "tw::sync_named(1",
    ),
    "skips the others' stages wrongly": (TAKING_TURNS, "phase ^= stage / 3 & 1;", ""),
    "ends with products in flight": (TAKING_TURNS, "tw::wgmma_wait<0>();", ""),
    "releases a stage that products in flight read": (
        TAKING_TURNS,
        "empty + 8 * (stage == 0 ? 2 : stage - 1)",
        "empty + 8 * stage",
    ),
    "finishes before its turn to add up": (SHARED, "== 1) {", ">= 0) {"),
    "does not leave zeros": (SHARED, "0.0f);", "1.0f);"),
    "leaves the ticket": (SHARED, "tw::store_global(ticket, 0u);", ""),
    "stores past the end": (SHARED, "if (row0", "if (true || row0"),
}
BROKEN = {
    "plain": PLAIN,
    "cluster": CLUSTER,
    "taking turns": TAKING_TURNS,
    "shared": SHARED,
    "apart": APART,
    "fetched": FETCHED,
}


class TestHopper(ProblemContract):
    cases, broken, bugs = CHOSEN, BROKEN, BUGS


LATECOMERS = {"a block": (CLUSTER, LATE), "the loading warp": (PLAIN, SLOW)}


@pytest.mark.parametrize("who", LATECOMERS)
def test_coming_late_does_no_harm(emulator, who):
    problem, late = LATECOMERS[who]
    result = verify(emulator, problem.workload, problem.changed("late", START, late))
    assert result.error_kind is None, result.error_text


def test_operands_larger_than_l2_may_leave_it_first(emulator):
    """Of both only B is: what lies beside it keeps its place."""
    made = workload("matmul", **SIZES)
    a, b = made.operands[:2]
    target = replace(small_target(), l2_bytes=a.span_bytes)
    assert a.span_bytes < b.span_bytes
    template = Hopper(made, target)
    values = {**{d.name: d.values[0] for d in template.decisions}, **USUAL, "evict_first": True}
    kernel = Space(made, target, [template]).lower(Schedule("hopper", tuple(values.items())))
    assert "&m_map, barrier, depth0, m0);" in kernel.source.body
    assert "&n_map, barrier, n0 + " in kernel.source.body
    assert "depth0, first);" in kernel.source.body
    result = verify(emulator, made, kernel)
    assert result.error_kind is None, result.error_text


@pytest.mark.parametrize(("promotion", "lost"), [(0, 4.0), (4, 1.0), (2, 0.0)])
def test_sums_of_float8_are_cut_off_as_on_an_h200(emulator, promotion, lost):
    """An H200 loses 4.0 of 512 products of .8125 and .6875 that wgmma adds to one sum."""
    work = workload("matmul", m=64, n=16, k=512, dtype="float8_e4m3fn", b="col", out="float32")
    template = Hopper(work, small_target())
    known = {decision.name: decision.values[0] for decision in template.decisions}
    values = {
        **known,
        **USUAL,
        "block_m": 64,
        "block_n": 16,
        "consumers": 1,
        "producer_registers": 0,
    }
    kernel = template.lower(
        Schedule("hopper", tuple({**values, "promotion_interval": promotion}.items()))
    )
    inputs = {"A": np.full((64, 512), 0.8125), "B": np.full((512, 16), 0.6875)}
    given = {n: x.astype(ml_dtypes.float8_e4m3fn) for n, x in inputs.items()}
    result = emulator.run(kernel, given)
    assert (output_of(result) == 286.0 - lost).all()


def test_what_fits_into_l2_has_no_priority():
    made = workload("matmul", **SIZES)
    assert "evict_first" not in [d.name for d in Hopper(made, small_target()).decisions]
