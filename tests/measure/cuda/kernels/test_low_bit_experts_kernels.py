"""Kernels whose rows choose their packed codes by a sorted table: any table, every way to multiply,
planted bugs."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.measure.cuda.kernels.test_low_bit_ring_kernels import PLAIN, RINGS, few
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.low_bit_dots.template import CudaLowBitDots
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language import inputs
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import silent_rules
from tilewright.spaces.workloads.workload import Workload

TEMPLATES = {**RINGS, "low_bit_dots": CudaLowBitDots}
EXPERTS = 5
TABLES = "q: {q}[5, n, k](packed); e: int32[t](sorted < 5); "
FLOATS = TABLES + "a: {kind}[t, k]; s: {kind}[5, k // {g}, n]; "
PLACE = "(q[e[t], n, k] - {z}) * s[e[t], k // {g}, n]"
IN_ORDER = FLOATS + "y[t, n] = sum[k](a[t, k] * " + PLACE + ")"
GATHERED = (
    TABLES + "r: int32[t](index < 9); a: {kind}[9, k]; s: {kind}[5, k // {g}, n]; "
    "b: {kind}[5, n]; w: {kind}[t]; "
    "y[t, n] = (sum[k](a[r[t], k] * " + PLACE + ") + b[e[t], n]) * w[t]"
)
BESIDE_BYTES = (
    TABLES + "a: int8[t, k]; s: {kind}[5, k // {g}, n]; d: float32[t]; "
    "y[t, n] = sum[k](a[t, k] * " + PLACE + ") * d[t]"
)


def product(text: str, t: int, n: int, k: int, q="uint4", kind="bfloat16", g=64, z=8) -> Workload:
    """A product of rows in five segments."""
    return workload(text.format(q=q, kind=kind, g=g, z=z), t=t, n=n, k=k)


def space(w: Workload, target: CudaTarget, name: str = "low_bit_ring") -> Space:
    """The space of one of the templates."""
    return Space(w, target, [TEMPLATES[name](w, target)])


@deferred
def case(
    text: str, t: int, n: int, k: int, arch="sm_90a", blocks=3, name="low_bit_ring", g=64, **v
) -> Case:
    """A workload, and the kernel of a schedule for a GPU of as many multiprocessors as
    ``blocks``."""
    w = product(text, t, n, k, g=g)
    own = space(w, few(arch, blocks), name)
    (template,) = own.templates.values()
    names = [decision.name for decision in template.decisions]
    plain = PLAIN | {"multiply": "mma", "blocks_per_sm": 1} | v
    schedule = Schedule(name, tuple((each, plain[each]) for each in names))
    assert own.why_not(schedule) is None, own.why_not(schedule)
    return w, own.lower(schedule)


TEAMS = {"tile_rows": 16, "warp_tiles": 2, "warp_columns": 2, "warp_depth": 2, "stages": 3}
WGMMA = {"multiply": "wgmma", "warp_columns": 4, "stages": 3, "scales": "early"}
CASES = {
    "rings": case(IN_ORDER, 40, 150, 256, **TEAMS),
    "few rows": case(IN_ORDER, 3, 40, 320, warp_tiles=3, blocks_per_sm=2),
    "warpgroups": case(IN_ORDER, 70, 170, 192, tile_rows=32, blocks_per_sm=2, **WGMMA),
    "by lanes": case(IN_ORDER, 40, 150, 256, arch="sm_80", **TEAMS),
    "gathered": case(GATHERED, 40, 70, 192, **TEAMS | {"warp_columns": 1}),
}
BYTES = case(BESIDE_BYTES, 30, 70, 256, name="low_bit_dots", **TEAMS | {"warp_columns": 1})
RAISED = case(IN_ORDER, 30, 70, 256, name="low_bit_raised", **TEAMS | {"warp_columns": 1})
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "weights of the expert before": ("rings", r"\(i64\)segment \*", "(i64)(segment * 3 / 4) *"),
    "weights of the first expert": ("gathered", r"\(i64\)segment \*", "(i64)0 *"),
    "scales of the next expert": (
        "rings",
        r"within\(\(\(i64\)(?=.*\), 5\) \* 600)",
        "within((1 + ",
    ),
    "scales of the row before": ("rings", r"(scale\(.*?)row0", r"\1(row0 > 0 ? row0 - 1 : 0)"),
    "a row of the next segment": ("rings", r"row < end_row", "row < tile_end"),
    "a row too few": ("few rows", r"row < end_row", "row < end_row - 1"),
    "tiles of the segment before": ("rings", r"<= tile_row\)", "< tile_row)"),
    "each tile is the first": ("rings", r"\(tile_row - tiles_before\) \* 16", "0"),
    "tiles overlap": ("by lanes", r"tiles_before\) \* 16", "tiles_before) * 8"),
    "a turn too few": ("rings", r"item < row_tiles \* 3", "item < row_tiles * 3 - 1"),
    "turns of other blocks": ("rings", r"item \+= 3", "item += 6"),
    "the same columns": ("rings", r"across = item % 3", "across = 0"),
    "no barrier behind a tile": ("rings", r"tw::fence_async\(\);\s*tw::sync_block\(\);", ""),
    "copies before sums are read": ("by lanes", r"tw::sync_block\(\);(?=\s*\}\s*\}\s*$)", ""),
    "rows where they lie": ("gathered", r"there \? \w+_source\(.*?, row\)", "there ? row % 9"),
    "the list is read too early": (
        "rings",
        r"tw::sync_block\(\);(?=\s*const int row_tiles)",
        "",
    ),
}  # fmt: skip


NEIGHBOUR = (r"\(i64\)segment \*", "(i64)(segment * 3 / 4) *")
RAISED_CASES, BYTE_CASES = {"raised": RAISED}, {"bytes": BYTES}
RAISED_BUGS = {
    "less of other rows": ("raised", r"less0\[r\], a, pair", "less0[0], a, pair"),
    "weights of the expert before": ("raised", *NEIGHBOUR),
}
BYTE_BUGS = {
    "weights of the expert before": ("bytes", *NEIGHBOUR),
    "a row of the next segment": ("bytes", r"row < end_row", "row < tile_end"),
}


class TestKernelsOfExperts(KernelContract):
    cases, bugs = CASES, BUGS


class TestRaisedKernelsOfExperts(KernelContract):
    numerics = Numerics.FAST
    cases, bugs = RAISED_CASES, RAISED_BUGS


class TestByteKernelsOfExperts(KernelContract):
    cases, bugs = BYTE_CASES, BYTE_BUGS


def tables(rows: int) -> dict[str, list[int]]:
    """Tables of rows by expert: none, one or all rows of each, and every boundary of two."""
    last = EXPERTS - 1
    found = {
        "all of the first": [0] * rows,
        "all of the last": [last] * rows,
        "all of the middle": [2] * rows,
        "one long": [0] + [1] * (rows - 2) + [last],
        "none of every other": sorted([0, 2, 4][i % 3] for i in range(rows)),
    }
    return found | {f"{i} and others": [1] * i + [3] * (rows - i) for i in range(1, rows)}


@pytest.mark.parametrize("kind", ["rings", "by lanes", "few rows"])
def test_any_table_is_served(emulator, kind):
    w, kernel = CASES[kind]
    drawn = dict(inputs.draw(w.program, 0))
    rows = drawn["e"].size
    for name, table in tables(rows).items():
        if rows > 8 and name.endswith("others") and int(name.split()[0]) % 16 not in (0, 1, 15):
            continue  # tiles have 16 rows
        arrays = drawn | {"e": np.array(table, np.int32)}
        given = arrays | {"q": tilewright.pack(arrays["q"], "uint4")}
        found = emulator.run(kernel, given)
        assert found.error_kind is None, (name, found.error_text)
        assert agrees(found.outputs["y"], *allowed(w.program, arrays)["y"]).all(), name


@pytest.mark.parametrize("kind", CASES)
def test_tables_that_are_not_sorted_reach_nothing_else(emulator, kind):
    w, kernel = CASES[kind]
    drawn = dict(inputs.draw(w.program, 0))
    given = drawn | {"q": tilewright.pack(drawn["q"], "uint4")}
    rows, generator = drawn["e"].size, np.random.default_rng(0)
    for low, high in ((0, EXPERTS), (-9, 9), (-(2**31), 2**31 - 1)):
        table = generator.integers(low, high, rows).astype(np.int32)
        assert emulator.run(kernel, given | {"e": table}).error_kind is None
    for entry in (-1, EXPERTS, 2**31 - 1):
        table = np.full(rows, entry, np.int32)
        assert emulator.run(kernel, given | {"e": table}).error_kind is None


def test_rows_that_are_not_sorted_are_no_segments():
    w = product(IN_ORDER.replace("sorted <", "index <"), 40, 64, 128)
    for name in RINGS:
        reason = TEMPLATES[name].why_not(w, cuda_target("sm_90a"))
        assert "needs a sorted table of rows" in str(reason)


@pytest.mark.parametrize(
    ("change", "serves"),
    [
        (("", ""), True),
        (("s[e[t], k // 64, n]", "s[4 - e[t], k // 64, n]"), True),
        (("s[e[t], k // 64, n]", "s[t // 8, k // 64, n]"), False),
        (("q[e[t], n, k]", "q[4 - e[t], n, k]"), False),
    ],
)
def test_segments_are_of_all_that_a_row_chooses(change, serves):
    w = product(IN_ORDER.replace("{g}", "64").replace(*change), 40, 64, 128)
    found = coded_product_of(w.program)
    assert isinstance(found, CodedProduct)
    assert (found.segments is not None) == serves


def test_every_rule_speaks():
    sizes = [(512, 4000, 8192), (64, 40960, 192), (40, 64, 384)]
    spaces = [space(product(IN_ORDER, *each), cuda_target("sm_90a")) for each in sizes]
    assert "resident_shared_memory" not in silent_rules(spaces, 400)


@pytest.mark.parametrize(
    ("name", "text"), [*((n, IN_ORDER) for n in RINGS), ("low_bit_dots", BESIDE_BYTES)]
)
def test_random_schedules_agree_with_the_reference(name, text):
    own = space(product(text, 34, 70, 128, q="int3", z=1), few("sm_90a", 5), name)
    verdicts = list(emulate(own, draw(own, 40)[:2], INTERLEAVINGS[:1]))
    assert verdicts
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]


FORMS = [
    ("low_bit_ring", IN_ORDER, (90, 70, 256), {"q": "uint4", "z": 8}),
    ("low_bit_ring", GATHERED, (60, 50, 192), {"q": "uint3", "z": 4, "g": 16}),
    ("low_bit_ring", GATHERED, (9, 90, 320), {"q": "float4_e2m1", "z": 0, "g": 32}),
    ("low_bit_ring", IN_ORDER, (200, 33, 128), {"q": "int8", "z": 0, "kind": "float16"}),
    ("low_bit_raised", GATHERED, (40, 80, 128), {"q": "uint2", "z": 1}),
    ("low_bit_dots", BESIDE_BYTES, (70, 60, 256), {"q": "uint5", "z": 16}),
]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("name", "text", "sizes", "form"), FORMS)
@pytest.mark.parametrize("blocks", [1, 4, 132])
def test_more_schedules_agree_with_the_reference(name, text, sizes, form, arch, blocks):
    own = space(product(text, *sizes, **form), few(arch, blocks), name)
    verdicts = list(emulate(own, draw(own, 80, blocks)[:4], INTERLEAVINGS[:2]))
    assert verdicts
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]
