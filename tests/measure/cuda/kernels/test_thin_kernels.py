"""Kernels of products with few rows: hard cases and planted bugs on the emulator, machine code."""

from __future__ import annotations

import pytest

from tests.measure.cuda.emulator.planting import deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import ORDERS, instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.cuda.thin.template import CudaThin
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

FMA = {
    "multiply": "fma",
    "lane_columns": 8,
    "thread_columns": 8,
    "thread_depth": 8,
    "in_flight": 1,
    "small_operand": "memory",
    "load_order": "lanes",
    "splits": 1,
    "warp_columns": 1,
    "warp_depth": 2,
    "blocks_per_sm": 1,
    "fetch": 0,
    "merge": "store",
}
MMA = {**FMA, "multiply": "mma", "thread_columns": 8, "small_operand": "shared"}
TURNED = {**MMA, "multiply": "mma_turned"}


@deferred
def case(values: dict, m: int, n: int, k: int, orders=ORDERS[2], target="sm_89", **options):
    """The workload, and the kernel of a schedule."""
    a, b, c = orders
    work = workload("matmul", m=m, n=n, k=k, a=a, b=b, c=c, **options)
    hardware = cuda_target(target)
    space = Space(work, hardware, [CudaThin(work, hardware)])
    return work, space.lower(Schedule("thin", tuple(values.items())))


def hard_cases() -> dict[str, tuple]:
    cases = {}
    for i, orders in enumerate(ORDERS):
        half = ("float16", "bfloat16")[i % 2]
        m, n = ((5, 200), (200, 3))[i // 2 % 2]
        way = " ".join(orders)
        two = {"in_flight": 2, "splits": (1, 2)[i % 2]}
        cases[f"fma, {way}"] = case(FMA, m, n, 1000, orders, dtype=half)
        # so that lanes read 64 bytes side by side
        deep = (orders[1] == "col") if m < n else (orders[0] == "row")
        odd = {"lane_columns": 2 if deep else 16, "thread_columns": 4}
        cases[f"fma, odd, {way}"] = case(FMA | two | odd, m, n + 1, 997, orders)
        cases[f"mma, {way}"] = case(MMA, m, n, 1000, orders, dtype=half)
        cases[f"mma, two steps, {way}"] = case(MMA | two, m, n, 1024, orders, dtype=half)
        cases[f"turned, {way}"] = case(TURNED | two, m, n, 1000, orders, dtype=half)
    for dtype, out in (("float64", "float64"), ("int8", "int32"), ("float8_e4m3fn", "bfloat16")):
        wide = {"thread_columns": 2, "thread_depth": 16}
        cases[dtype] = case(FMA | wide, 2, 300, 512, dtype=dtype, out=out)
    epilogue = "gelu(x + bias[n]) * scale[] + residual[n, m] * rows[m]"
    fused = {"dtype": "float16", "epilogue": epilogue}
    for rows in (1, 8, 9, 16):
        for small in ("shared", "memory", "cache"):
            cases[f"{rows} rows, {small}"] = case(
                MMA | {"small_operand": small}, rows, 136, 512, **fused
            )
            narrow = TURNED | {"small_operand": small, "thread_columns": 1, "thread_depth": 16}
            cases[f"turned, {rows} rows, {small}"] = case(narrow, rows, 135, 504, **fused)
    for exchange in ("store", "add"):
        split = {"splits": 4, "merge": exchange}
        cases[f"split by {exchange}"] = case(MMA | split, 4, 128, 1024, **fused)
    for i, (m, n, k) in enumerate(((1, 64, 1024), (8, 100, 1000), (12, 130, 776))):
        rows = {
            "load_order": "rows",
            "thread_columns": 4 - i % 2 * 2,
            "thread_depth": (16, 32, 64)[i],
        }
        for small in ("shared", "memory", "cache"):
            for way in (MMA, TURNED):
                cases[f"{way['multiply']} by rows, {m} rows, {small}"] = case(
                    way | rows | {"small_operand": small}, m, n, k, **fused
                )
    cases["fma, cached"] = case(
        FMA | {"small_operand": "cache", "lane_columns": 4, "in_flight": 2, "splits": 2},
        3,
        100,
        1000,
    )
    wide = {"lane_columns": 1, "thread_columns": 2, "thread_depth": 16}
    cases["a warp for each column"] = case(FMA | wide, 1, 37, 2000, dtype="float16")
    return cases


CASES = hard_cases()


@pytest.mark.parametrize(("m", "n"), [(7, 72), (72, 7)])
def test_products_of_one_term_are_read_in_whole_vectors(m, n):
    """Columns and the depth both have stride 1 then."""
    hardware = cuda_target("sm_90a")
    work = workload("bmm", batch=3, m=m, n=n, k=1, b="col")
    space = Space(work, hardware, [CudaThin(work, hardware)])
    verdicts = list(emulate(space, draw(space, 8, 0)))
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]


# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "does not wait for the copy": ("4 rows", r"tw::cp_async_wait<0>\(\);", ""),
    "no barrier after the copy": ("4 rows", r"(wait<0>\(\);\s*)tw::sync_block\(\);", r"\1"),
    "no barrier before sums": ("4 rows", r"(?s)(sync_block.*?)tw::sync_block\(\);", r"\1"),
    "no barrier behind sums": ("4 rows", r"tw::sync_block\(\);(?=\s*float total)", ""),
    "copies too little": ("4 rows", r"cp_async<16>\(([^;]*)\? 16 : 0", r"cp_async<16>(\1? 8 : 0"),
    "reads terms that are not there": (
        "tails",
        r"(?s)(step \+ 1 < steps.*?) && depth0[^&\n]*?< 1000",
        r"\1",
    ),
    "reads columns that are not there": ("tails", r"if \(column0[^&]*&& ", "if ("),
    "stores columns that are not there": (
        "tails",
        r"if \(column0 [^&]*< 202\) \{\s*const",
        "{ const",
    ),
    "one step too few": ("tails", r"step < steps; step", "step + 1 < steps; step"),
    "one step too many": ("4 rows", r"if \(step \+ 1 < steps\)", "if (true)"),
    "stays at the first step": ("tails", r"from \+= \d+;", ""),
    "the small operand stays": ("4 rows", r"term0 \+= \d+;", ""),
    "a shuffle is left out": ("tails", r"tw::shuffle_xor\(sums\[i\], 1\)", "0.0f"),
    "a warp is left out": ("tails", r"part < 2; part", "part < 1; part"),
    "second stage is the first": ("two stages", r"held1\[4 \* f0", "held0[4 * f0"),
    "terms exchanged": ("4 rows", r"b\[2\] = \{(.*), (.*)\};", r"b[2] = {\2, \1};"),
    "columns exchanged": ("4 rows", r"a\[4\] = \{(.*?), (.*?),", r"a[4] = {\2, \1,"),
    "reads the slab too early": ("rows", r"tw::sync_warp\(\);", ""),
    "no barrier behind slabs": ("rows", r"tw::sync_block\(\);", ""),
    "slabs overlap": ("rows", r"slab = shared \+ \(3072 \*", "slab = shared + (1536 *"),
    "turned terms exchanged": ("turned", r"b\[2\] = \{(.*), (.*)\};", r"b[2] = {\2, \1};"),
    "turned rows exchanged": ("turned", r"a\[4\] = \{(.*?), (.*?),", r"a[4] = {\2, \1,"),
    "turned columns exchanged": ("turned", r"sums\[(\w+)\]\[1\]", r"sums[\1][0]"),
    "turned rows are left out": ("turned", r"if \(.* \+ 8 < 11\)", "if (false)"),
    "the cached operand stays": ("turned", r"term0 \+= \d+;", ""),
    "the cached operand starts at the first part": ("turned", r"term0 = depth0", "term0 = 0"),
    "the ticket is kept": ("split", r"tw::store_global\(ticket, 0u\)", ""),
}
BROKEN = {
    "4 rows": case(MMA, 4, 128, 1024, dtype="float16"),
    "tails": case(FMA | {"thread_columns": 4}, 3, 202, 1000, dtype="float16"),
    "two stages": case(MMA | {"in_flight": 2}, 4, 128, 1024, dtype="float16"),
    "rows": case(
        MMA
        | {
            "load_order": "rows",
            "small_operand": "memory",
            "thread_columns": 2,
            "thread_depth": 16,
        },
        *(4, 64, 1024),
        dtype="float16",
    ),
    "split": case(MMA | {"splits": 4}, 4, 128, 1024, dtype="float16"),
    "turned": case(
        TURNED | {"small_operand": "cache", "splits": 2, "thread_columns": 1, "thread_depth": 16},
        *(11, 64, 1024),
        dtype="float16",
    ),
}


class TestThinKernels(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("orders", [ORDERS[0], ORDERS[2]])
@pytest.mark.parametrize("way", ["fma", "mma"])
def test_the_large_operand_comes_in_16_bytes_and_never_through_shared_memory(target, orders, way):
    values = {"fma": FMA | {"small_operand": "shared"}, "mma": MMA}[way] | {"in_flight": 2}
    made = case(values, 1, 4096, 14336, orders, target, dtype="float16")
    found = instructions(target, made)
    assert found["LDG"] == found["LDG.128"] > 0
    assert found["LDL"] == found["STL"] == 0
    assert (found["HMMA"] > 0) == (way == "mma")
    copies = found["LDGSTS"]
    assert copies == found["LDGSTS.128"] > 0
    assert copies < found["LDG"]
