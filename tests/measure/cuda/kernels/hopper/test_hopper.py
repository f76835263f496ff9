"""Hopper kernels on the emulator, in any order of events: right as generated, caught if broken."""

from __future__ import annotations

import pytest

from measure.cuda.emulator import verify
from tests.measure.cuda.kernels.hopper.hopper_problems import (
    LATE,
    START,
    Problem,
    ProblemContract,
    check_drawn,
    drawn,
)

SIZES: dict[str, int | str] = {"m": 200, "n": 264, "k": 264, "dtype": "bfloat16"}
EPILOGUE = {**SIZES, "epilogue": "gelu(x + bias[n]) + r[m, n]"}
TURNS = {"schedule": "pingpong", "block_n": 64}
FETCH = {"fetch": True}
SMALL = {"block_m": 64, "consumers": 1, "producer_registers": 0}

CHOSEN = {
    "cooperative": Problem(SIZES),
    "three warpgroups, a lone loading warp": Problem(
        SIZES, {"consumers": 3, "block_m": 192, "producer_registers": 0}
    ),
    "one warpgroup with two blocks": Problem(
        SIZES, {"consumers": 1, "block_n": 80, "producer_registers": 0}
    ),
    "two blocks each": Problem(EPILOGUE, {"block_m": 256, "block_n": 48}, 1),
    "two blocks on a multiprocessor": Problem(
        EPILOGUE, {**SMALL, "block_n": 80, "residency": 2}, 1
    ),
    "two of them in turns": Problem(
        {**SIZES, "m": 128},
        {**TURNS, "block_m": 64, "producer_registers": 0, "residency": 2, "splits": 2},
        8,
    ),
    "products in flight": Problem(SIZES, {"in_flight": 1, "stages": 2}),
    "in turns": Problem(EPILOGUE, TURNS, 1),
    "three in turns, products in flight": Problem(
        {**SIZES, "k": 600},
        {**TURNS, "consumers": 3, "block_m": 64, "producer_registers": 32, "in_flight": 1},
        1,
    ),
    "cluster along rows": Problem(EPILOGUE, {"cluster": "2x1"}),
    "cluster along columns": Problem(EPILOGUE, {"cluster": "1x2", "block_n": 48}, 4),
    "clusters in turns, in flight": Problem(SIZES, {**TURNS, "cluster": "2x1", "in_flight": 1}),
    "cluster of tiles past the end": Problem({**SIZES, "m": 384}, {"cluster": "2x1", "staging": 0}),
    "swapped": Problem(
        {**EPILOGUE, "c": "col", "m": 264, "n": 24}, {"swapped": True, "block_n": 32}
    ),
    "swapped, direct": Problem(
        {**EPILOGUE, "m": 24}, {"swapped": True, "block_n": 32, "staging": 0}
    ),
    "swapped float32 cluster": Problem(
        {**EPILOGUE, "m": 72, "out": "float32"},
        {"swapped": True, "block_n": 80, "cluster": "2x1", "block_m": 64, "consumers": 1}
        | {"producer_registers": 0},
    ),
    "float32 staged twice": Problem({**SIZES, "out": "float32"}, {"staging": 2, "block_n": 208}),
    "staged four times": Problem(SIZES, {"staging": 4, "block_n": 160}),
    "direct odd stores": Problem({**EPILOGUE, "m": 199, "n": 263, "b": "col"}, {"staging": 0}),
    "left across": Problem({**SIZES, "a": "col", "b": "col"}, {"cluster": "1x2"}),
    "right across in narrow panels": Problem(SIZES, {"block_n": 144, "cluster": "2x1"}),
    "half rows of depth": Problem({**SIZES, "a": "col"}, {"depth": 32, "cluster": "2x1"}),
    "odd depth": Problem({**SIZES, "a": "col", "k": 129}, {"splits": 3}, 8),
    "shared depth in a cluster": Problem(EPILOGUE, {"splits": 2, "cluster": "2x1"}, 4),
    "shared depth in turns": Problem(EPILOGUE, {**TURNS, "splits": 2, "staging": 0}, 6),
    "two blocks meet in a tile": Problem({**SIZES, "m": 128, "n": 128}, {"splits": 2}),
    "hilbert": Problem({**SIZES, "m": 500}, {"raster": "hilbert", "block_n": 48}),
    "bands of rows": Problem({**SIZES, "m": 500}, {"group": 2, "block_n": 64}),
    "bands of columns in a cluster": Problem(
        {**SIZES, "m": 500}, {"raster": "along_rows", "group": 4, "cluster": "1x2", "block_n": 32}
    ),
    "float8": Problem(
        {**SIZES, "dtype": "float8_e4m3fn", "b": "col", "k": 272}, {"depth": 128, "stages": 2}
    ),
    "float8 added up in float32": Problem(
        {**SIZES, "dtype": "float8_e4m3fn", "b": "col", "k": 720},
        {"promotion": 2, "block_m": 256, "block_n": 48},
        1,
    ),
    "float8 added up at each step, in turns": Problem(
        {**SIZES, "dtype": "float8_e5m2", "b": "col", "k": 272},
        {**TURNS, "promotion": 1, "block_m": 64, "cluster": "2x1"},
    ),
    "tfloat32": Problem(
        {**SIZES, "dtype": "tfloat32", "b": "col", "k": 268, "epilogue": "x + bias[n]"},
        {"depth": 32, "cluster": "2x1", "staging": 2},
    ),
    "tfloat32, swapped, half rows": Problem(
        {**SIZES, "dtype": "tfloat32", "b": "col", "m": 40},
        {"depth": 16, "swapped": True, "block_n": 48, "staging": 0},
    ),
    "residual fetched": Problem(EPILOGUE, {**FETCH, "staging": 2}),
    "residual fetched by two blocks each": Problem(
        EPILOGUE, {**FETCH, "block_m": 256, "block_n": 64, "staging": 2}, 1
    ),
    "residual fetched in turns": Problem(EPILOGUE, {**TURNS, **FETCH, "staging": 2}, 1),
    "residual fetched in clusters": Problem(EPILOGUE, {**FETCH, "cluster": "2x1", "block_n": 64}),
    "residual fetched, two blocks on a multiprocessor": Problem(
        EPILOGUE, {**SMALL, **FETCH, "staging": 2, "residency": 2, "stages": 2}, 1
    ),
    "residual fetched, swapped": Problem(
        {**EPILOGUE, "m": 24}, {**FETCH, "swapped": True, "block_n": 32}
    ),
    "residual of float32 fetched": Problem(
        {**EPILOGUE, "out": "float32"}, {**FETCH, "block_n": 64, "staging": 2}
    ),
    "residual of float32 fetched, swapped": Problem(
        {**EPILOGUE, "m": 72, "out": "float32"},
        {**SMALL, **FETCH, "swapped": True, "block_n": 64},
    ),
    "residuals of a batch fetched": Problem(
        {"batch": 3, **SIZES, "epilogue": "x + r[batch, m, n]"}, {**FETCH, "block_n": 64}
    ),
    "other float8, half rows": Problem(
        {**SIZES, "dtype": "float8_e5m2", "out": "float16", "b": "col", "k": 272},
        {"cluster": "1x2"},
    ),
}


@pytest.mark.parametrize("seed", range(2))
def test_random_schedules_agree_with_the_reference(emulator, seed):
    check_drawn(emulator, drawn(8, seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_random_schedules_agree_with_the_reference(emulator, seed):
    check_drawn(emulator, drawn(40, seed), seed)


# ---------------------------------------------------------------- planted bugs

PLAIN = Problem({**SIZES, "k": 600, "epilogue": "x + bias[n]"}, {"stages": 3}, 1)
CLUSTER = Problem({**SIZES, "k": 600}, {"cluster": "2x1", "staging": 2, "block_n": 64})
TAKING_TURNS = Problem({**SIZES, "k": 600}, {**TURNS, "in_flight": 1}, 1)
SHARED = Problem({**SIZES, "k": 600}, {"splits": 2, "staging": 0}, 3)
APART = Problem({**SIZES, "k": 600}, {"splits": 2, "staging": 0}, 4)  # parts in unlike blocks

SLOW = "  if (threadIdx.x / 32 == 8) for (int i = 0; i < 20; i++) tw::sync_warp();\n" + START
DRAIN = "      for (int i = 0; "

FETCHED = Problem(
    {**SIZES, "n": 256, "k": 64, "epilogue": "relu(x + r[m, n])"}, {**FETCH, "block_n": 64}, 1
)

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
        "if (row0",
        "if (true || row0",
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
