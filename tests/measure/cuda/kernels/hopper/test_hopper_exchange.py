"""Hopper blocks of a cluster that exchange sums: right in any order of events, caught if broken."""

from __future__ import annotations

import pytest

from tests.measure.cuda.kernels.hopper.hopper_problems import (
    LATE,
    START,
    Problem,
    ProblemContract,
    check_drawn,
    drawn,
)
from tilewright.measure.cuda.emulator import Emulator, verify

SIZES: dict[str, int | str] = {"m": 128, "n": 264, "k": 488, "dtype": "bfloat16"}
EPILOGUE = {**SIZES, "epilogue": "gelu(x + bias[n]) + r[m, n]"}
FLOAT8 = {**SIZES, "dtype": "float8_e4m3fn", "b": "col"}
TWO = {"splits": 2, "merge": "cluster"}
THREE = {"splits": 3, "merge": "cluster", "block_n": 96}
FOUR = {"splits": 4, "merge": "cluster", "block_n": 64}
EIGHT = {"splits": 8, "merge": "cluster", "block_n": 128}
LOW = {"block_m": 64, "consumers": 1, "producer_registers": 0}
SWAPPED = {"swap_ab": True, "block_m": 128}

CHOSEN = {
    "two parts": Problem(SIZES, TWO, 8),
    "three, tails on all sides": Problem({**EPILOGUE, "m": 130, "k": 264}, THREE, 20),
    "four, one low tile": Problem({**EPILOGUE, "m": 64}, {**FOUR, **LOW}, 20),
    "eight, a short last part": Problem({**SIZES, "m": 100, "k": 968}, EIGHT, 24),
    "six": Problem({**SIZES, "k": 712}, {**THREE, "splits": 6}, 20),
    "direct": Problem(
        {**EPILOGUE, "m": 127, "n": 135, "b": "col"}, {**FOUR, "store_buffers": 0}, 12
    ),
    "direct slices of 8": Problem(
        {**SIZES, "m": 72}, {**EIGHT, "block_n": 64, "store_buffers": 0}, 40
    ),
    "two blocks of rows each": Problem({**EPILOGUE, "m": 256}, {**FOUR, "block_m": 256}, 20),
    "three warpgroups, in flight": Problem(
        {**SIZES, "m": 192},
        {**TWO, "block_m": 192, "consumers": 3, "producer_registers": 32, "in_flight": 1},
        8,
    ),
    "two blocks on a multiprocessor": Problem(
        {**EPILOGUE, "m": 100}, {**FOUR, **LOW, "blocks_per_sm": 2}, 20
    ),
    "tails of tiles along rows": Problem(
        {**EPILOGUE, "m": 72, "n": 80, "k": 264},
        {**TWO, **LOW, "block_n": 16, "store_buffers": 0, "raster": "along_rows"},
        20,
    ),
    "half rows of depth": Problem({**SIZES, "a": "col"}, {**FOUR, "depth": 32, "stages": 6}, 20),
    "swap_ab": Problem({**EPILOGUE, "m": 72}, {**FOUR, **SWAPPED}, 24),
    "swapped, direct": Problem(
        {**EPILOGUE, "m": 66, "b": "col"}, {**TWO, **SWAPPED, "block_n": 80, "store_buffers": 0}, 8
    ),
    "swapped float32, staged twice": Problem(
        {**EPILOGUE, "m": 64, "out": "float32"}, {**EIGHT, **SWAPPED, "block_n": 64}, 24
    ),
    "float32 staged four times": Problem(
        {**SIZES, "out": "float32"}, {**FOUR, "block_n": 128, "store_buffers": 4}, 12
    ),
    "staged twice": Problem({**SIZES, "dtype": "float16"}, {**TWO, "store_buffers": 2}, 8),
    "tfloat32": Problem(
        {**SIZES, "dtype": "tfloat32", "b": "col", "epilogue": "x + bias[n]"},
        {**FOUR, "depth": 32},
        20,
    ),
    "float8": Problem(
        {**FLOAT8, "k": 912}, {**FOUR, "depth": 128, "stages": 2, "promotion_interval": 1}, 20
    ),
    "float8 added up in float32": Problem(
        {**FLOAT8, "k": 720, "epilogue": "relu(x + bias[n])"},
        {**THREE, "promotion_interval": 2, "stages": 4},
        12,
    ),
}


def test_sums_are_exchanged_without_bank_conflicts(emulator):
    problem = CHOSEN["direct"]
    result = emulator.run(problem.kernel, problem.workload.make_inputs(0))
    assert result.error_kind is None, result.error_text
    assert result.conflicts == 0


def test_parts_are_the_blocks_of_a_cluster_and_nothing_goes_through_global_memory():
    for problem in CHOSEN.values():
        kernel = problem.kernel
        assert kernel.call.launches[0].cluster[0] == problem.changes["splits"]
        assert kernel.call.workspace_bytes == 0
        assert "atomic_add" not in kernel.source.body


def check(emulator: Emulator, count: int, seed: int) -> None:
    check_drawn(emulator, drawn(count, seed, 4, (8, 16, 32), {"merge": "cluster"}, 4), seed)


def test_random_schedules_agree_with_the_reference(emulator):
    check(emulator, 12, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30, 36))
def test_many_random_schedules_agree_with_the_reference(emulator, seed):
    check(emulator, 40, seed)


# ---------------------------------------------------------------- planted bugs

PLAIN = Problem({**SIZES, "k": 600}, {**FOUR, "stages": 3}, 20)
FLYING = Problem({**SIZES, "k": 600}, {**TWO, "store_buffers": 0, "in_flight": 1}, 8)
SAY = "  tw::cluster_arrive_relaxed();\n"
HEAR = "      tw::cluster_wait();\n"
MAKE, SHOW = "    tw::mbarrier_init(shared + 114736, 1);\n", "    tw::fence_barrier_init();\n"
WAIT = "      tw::mbarrier_wait_cluster(shared + 114736, 0);\n"
SEND = "        if (part != 0) tw::store_async_x4"
LAND, FLYING_WAIT = "      tw::wgmma_wait<0>();\n", WAIT.replace("114736", "131120")

# problem, what is replaced (wherever it stands), by what, and so on
BUGS = {
    "sends before the others' barriers are there": (PLAIN, HEAR, "", START, LATE),
    "says too early that its barrier is there": (PLAIN, SAY, "", START, SAY + LATE),
    "the loading warps do not say that they are there": (
        PLAIN,
        SAY,
        "  if (group < 2) tw::cluster_arrive_relaxed();\n",
    ),
    "makes the barrier after the fence": (PLAIN, MAKE + SHOW, SHOW + MAKE),
    "counts the other blocks as arrivals": (PLAIN, MAKE, MAKE.replace(", 1", ", 3")),
    "expects too few bytes": (PLAIN, "114736, 24576)", "114736, 16384)"),
    "expects too many bytes": (PLAIN, "114736, 24576)", "114736, 32768)"),
    "does not wait for the sums": (PLAIN, WAIT, ""),
    "waits for another phase": (PLAIN, WAIT, WAIT.replace(", 0", ", 1")),
    "waits as for its own block": (PLAIN, WAIT, WAIT.replace("_cluster", "")),
    "sends products still in flight": (FLYING, LAND, "", FLYING_WAIT, LAND + FLYING_WAIT),
    "stores another rank's slice": (PLAIN, " + part * 16;", " + (3 - part) * 16;"),
    "leaves its own slice in place": (PLAIN, "if (part == 2) {", "if (false) {"),
    "keeps another rank's slice": (PLAIN, "if (part == 1) {", "if (part == 2) {"),
    "overwrites sums before it sends them": (
        PLAIN,
        SEND,
        "        if (part == 1) sums[0][4 * o0] = sums[0][4 * o0 + 8];\n" + SEND,
    ),
    "sends another rank's slice": (PLAIN, "&sums[0][4 * o0 + 8]", "&sums[0][4 * o0 + 16]"),
    "sends its own slice, too": (PLAIN, "if (part != 1) ", ""),
    "leaves a block out": (PLAIN, "if (part != 1) ", "if (part != 1 && part != 3) "),
    "sends all to one slot": (PLAIN, "8192 * (((part + 1) % 4))", "8192 * 0"),
    "sends to slots that overlap": (PLAIN, "8192 * (((part", "4096 * (((part"),
    "warpgroups share a slot": (PLAIN, "+ 4096 * group", "+ 0 * group"),
    "sends to itself": (
        PLAIN,
        "map_shared(shared + 90112, 2)",
        "map_shared(shared + 90112, rank)",
        "map_shared(shared + 114736, 2)",
        "map_shared(shared + 114736, rank)",
    ),
    "completes its own barrier": (PLAIN, "(shared + 114736, 2)", "(shared + 114736, rank)"),
    "sends beyond the room": (PLAIN, "to[1] + ", "to[1] + 8192 + "),
    "receives in the ring": (FLYING, "shared + 98304", "shared + 32768"),
    "receives in the staging buffers": (PLAIN, "shared + 90112", "shared + 81920"),
    "adds a slice twice": (PLAIN, "thread + 16384)", "thread + 8192)"),
    "leaves a slice out": (PLAIN, "sums[0][4 * i0 + 1] += sent[1];", ""),
    "parts overlap": (PLAIN, "first_step = part * 3", "first_step = part * 2"),
}


class TestExchange(ProblemContract):
    cases, broken, bugs = CHOSEN, {"plain": PLAIN, "flying": FLYING}, BUGS


def test_a_block_that_comes_late_does_no_harm(emulator):
    result = verify(emulator, PLAIN.workload, PLAIN.changed("late", START, LATE))
    assert result.error_kind is None, result.error_text
