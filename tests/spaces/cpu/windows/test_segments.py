"""Products whose rows come in segments, on a CPU: any table is served, and nothing else is read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.kernels import planted
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels, complaint
from tests.spaces.tables import inputs_of
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.windows.template import WindowsTemplate
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import TemplateContract
from tilewright.spaces.workloads.workload import Workload

SIZES = "t=37 n=29 k=19 experts=5"
BESIDE = "gelu(x + bias[expert[t], n]) * gate[t, n]"
GROUPED = {
    "one after the other": f"grouped_matmul {SIZES}",
    "transposed weights": f"grouped_matmul {SIZES} b=col",
    "bfloat16": f"grouped_matmul {SIZES} dtype=bfloat16",
    "bfloat16, wide, transposed": f"grouped_matmul {SIZES} dtype=bfloat16 out=float32 b=col",
    "fused": f'grouped_matmul {SIZES} epilogue="{BESIDE}"',
    "gathered": f'grouped_matmul {SIZES} rows=11 epilogue="{BESIDE}"',
    "gathered, bfloat16": f"grouped_matmul {SIZES} rows=50 dtype=bfloat16 b=col",
    "deep": 'grouped_matmul t=25 n=21 k=300 experts=4 epilogue="relu(x + bias[expert[t], n])"',
    "gathered alone": (
        '"row: int32[i](index < 9); y[i,j] = sum[k](x[row[i],k] * w[k,j])" i=21 j=12 k=7'
    ),
    "one group": "grouped_matmul t=9 n=17 k=5 experts=1",
    "one row": "grouped_matmul t=1 n=17 k=5 experts=4",
    "one column": "grouped_matmul t=20 n=1 k=5 experts=4",
    "more groups than rows": "grouped_matmul t=6 n=40 k=33 experts=50",
    "other names, and columns apart": (
        '"which: int32[i](sorted < 3); y[i,p,q] = relu(sum[k](w[which[i],p,k,q] * x[i,k]))" '
        "i=23 p=3 q=10 k=7"
    ),
}


def machine(threads: int = 1) -> CpuTarget:
    return dataclasses.replace(
        this_cpu(), threads=threads, cores=threads, l1_bytes=8 << 10, l2_bytes=32 << 10
    )


def space_of(w: Workload, target: CpuTarget) -> Space:
    assert WindowsTemplate.refuses(w, target) is None
    return Space(w, target, [WindowsTemplate(w, target)])


class TestSegments(TemplateContract):
    template = WindowsTemplate

    def served(self):
        return [(workload(text), machine(2)) for text in GROUPED.values()]

    def refused(self):
        return [(workload(text), machine()) for text, _ in REFUSED]


SHARED = ("fused", "gathered", "other names, and columns apart", "more groups than rows")


@pytest.mark.parametrize(
    ("name", "threads"), [*((name, 1) for name in GROUPED), *((name, 6) for name in SHARED)]
)
def test_every_table_is_served(name, threads, tmp_path):
    w, target = workload(GROUPED[name]), machine(threads)
    space = space_of(w, target)
    rows = np.unique(space.sample(np.random.default_rng(threads), 40), axis=0)[::10]
    kernels = [space.lower(space.schedule(row)) for row in rows]
    library = compile_kernels(kernels, target, tmp_path)
    found = [complaint(k, library, w, 0, given) for k in kernels for given in inputs_of(w)]
    assert found
    assert not any(found), found


@pytest.mark.parametrize("entry", [-1, 7, -(2**31), 2**31 - 1])
def test_a_wild_table_leads_to_no_wild_access(entry, tmp_path):
    w, target = workload(GROUPED["gathered"]), machine()
    space = space_of(w, target)
    kernel = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
    library = compile_kernels([kernel], target, tmp_path)
    drawn = w.make_inputs(0)
    drawn["expert"][::3] = entry
    drawn["row"][::2] = entry
    found = complaint(kernel, library, w, 0, drawn)
    assert "wrote outside" not in found, found
    assert "changed" not in found, found


FIXED = {"tile_rows": 3, "tile_vectors": 2, "order": "rows_outer", "unroll": 1}
FIXED |= {"row_workers": 2, "column_workers": 1, "batch_workers": 1, "pack_right": True}
FIXED |= {"block_depth": 128, "block_columns": 8}
# what is broken: pattern, replacement of its first occurrence
BUGS = {
    "a segment's last row": (r"rows = last - first", "rows = last - first - (last > first + 1)"),
    "a segment ends a row late": (r"return last;", "return last + (last < end);"),
    "the table of the row before": (r": table\[first\]", ": table[first - (first > 0)]"),
    "the table's first entry for all": (r": table\[first\]", ": table[0]"),
    "the first group's matrix for all": (r"entry = table\[first\] < 0 \? 0 : [^;]*", "entry = 0"),
    "a segment goes on over its end": (r"table\[last\] == table\[first\]", "1"),
    "rows of the first segment": (r"(l = \(const float \*\)call->buffers\[1\]) [^;]*", r"\1"),
    "output of the first segment": (r"(c = \(float \*\)call->buffers\[5\]) [^;]*", r"\1"),
    "a bias of another expert": (r"(e0 = [^;]*)29 \* segment", r"\1 28 * segment"),
    "a gate of another segment": (r"(e1 = [^;]*)29 \* first", r"\1 28 * first"),
    "a worker begins a row late": (r"first = \(19 \* worker\)", "first = 20 * worker"),
    "a tile too few": (r"\(rows \+ 2\) / 3", "rows / 3"),
    "a whole tile where columns end": (r"rows == 2 && ", "rows == 2 && 0 && "),
}


def test_every_planted_bug_is_found(tmp_path):
    w = workload(GROUPED["fused"])
    target = dataclasses.replace(
        machine(2), vector_bytes=16, isa="generic", bf16_dot=False, flags=("-O0",)
    )
    template = WindowsTemplate(w, target)
    chosen = tuple((d.name, FIXED[d.name]) for d in template.decisions)
    right = template.lower(Schedule("windows", chosen))
    check_bugs_are_found(right, BUGS, w, target, tmp_path, list(inputs_of(w)))


DOTS = {
    "few rows": "grouped_matmul t=9 n=70 k=300 experts=5 b=col",
    "prime": f"grouped_matmul {SIZES} b=col",
    "bfloat16": f"grouped_matmul {SIZES} rows=50 dtype=bfloat16 b=col",
    "fused": f'grouped_matmul {SIZES} b=col epilogue="{BESIDE}"',
}


@pytest.mark.parametrize("name", DOTS)
def test_transposed_weights_are_read_in_place(name, tmp_path):
    w, target = workload(DOTS[name]), machine(2)
    space = space_of(w, target)
    rows = np.unique(space.sample(np.random.default_rng(0), 600), axis=0)
    in_place = [s for s in map(space.schedule, rows) if not s["pack_right"]]
    chosen = np.random.default_rng(0).permutation(np.array(in_place, object))[:6]
    kernels = [space.lower(schedule) for schedule in chosen]
    assert kernels
    assert not any("_right(" in kernel.source.body for kernel in kernels)
    library = compile_kernels(kernels, target, tmp_path)
    found = [complaint(k, library, w, 0, given) for k in kernels for given in inputs_of(w)]
    assert not any(found), found


def test_many_rows_meet_packed_weights_alone():
    """Transposed weights in place are for experts of 16 rows in the mean and fewer."""
    for count, expected in ((80, {False, True}), (400, {True})):
        space = space_of(workload(f"grouped_matmul t={count} n=64 k=19 experts=5 b=col"), machine())
        rows = space.sample(np.random.default_rng(0), 200)
        assert {space.schedule(row)["pack_right"] for row in rows} == expected


DOT_BUGS = {
    "the first columns for all": (r"a, b \+ 600 \* j0", "a, b + 0 * j0"),
    "columns half as far apart": (r"a, b \+ 600 \* j0", "a, b + 300 * j0"),
    "sums of the first columns": (r"s \+ 2 \* j0", "s + 0 * j0"),
    "a tile of columns too few": (r"j0 < 4; j0\+\+", "j0 < 3; j0++"),
    "the last column is written one too early": (r"(_3x5_dots1\(a, b \+ 1200, s) \+ 4", r"\1 + 3"),
    "another expert's columns": (r"8700 \* segment", "8400 * segment"),
    "a block of the depth is not added": (r"turns, t > 0\)", "turns, 0)"),
    "a block of the depth is read again": (
        r"r \+ 300 \* column0 \+ 300 \* j \+ t,",
        "r + 300 * j,",
    ),
}


def test_every_planted_bug_of_dots_is_found(tmp_path):
    """Tiles of 3 rows and 2 columns: 10 registers hold no more."""
    w = workload("grouped_matmul t=37 n=29 k=300 experts=5 b=col")
    target = dataclasses.replace(
        machine(2), vector_bytes=16, isa="generic", bf16_dot=False, flags=("-O0",)
    )
    template = WindowsTemplate(w, dataclasses.replace(target, vector_registers=10))
    values = {**FIXED, "pack_right": False}
    chosen = tuple((d.name, values[d.name]) for d in template.decisions)
    right = template.lower(Schedule("windows", chosen))
    check_bugs_are_found(right, DOT_BUGS, w, target, tmp_path, list(inputs_of(w)))


REFUSED = [
    (
        '"e: int32[i](index < 3); y[i,j] = sum[k](x[i,k] * w[e[i],k,j])" i=9 j=5 k=4',
        "w is read at e[i]",
    ),
    (
        '"e: int32[i](sorted < 3); y[i,h,j] = sum[k](x[i,h,k] * w[e[i],k,j])" i=9 h=2 j=5 k=4',
        "i, in segments of e, is not all of the batch and of the rows",
    ),
    (
        '"e: int32[j](sorted < 3); y[i,j] = sum[k](x[j,k] * w[e[j],k,i])" i=9 j=5 k=4',
        "j, in segments of e, is not all of the batch and of the rows",
    ),
    ("grouped_matmul t=9 n=5 k=4 experts=3 dtype=float64", "allowed: float32"),
    (
        'grouped_matmul t=9 n=5 k=4 experts=3 epilogue="x + expert[t]"',
        "expert[t] is a number of int32; what is fused has float32, bfloat16",
    ),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_refusals_say_why(text, words):
    assert words in (WindowsTemplate.refuses(workload(text), this_cpu()) or "")


def test_rows_that_a_table_chooses_are_copied_by_all_workers(tmp_path):
    w, target = workload(GROUPED["gathered"]), machine(3)
    space = space_of(w, target)
    kernels = [space.lower(space.schedule(r)) for r in space.sample(np.random.default_rng(5), 2)]
    bugs = [
        (r"table\[n0\];|table\[([^\]]+)\];", "table[0];"),
        (r"source = 19", "source = 18"),
        (r", 76\);", ", 72);"),
    ]
    kernels += [planted(kernels[0], *bug, entry=f"bug{n}") for n, bug in enumerate(bugs)]
    library = compile_kernels(kernels, target, tmp_path)
    found = [complaint(kernel, library, w, 0) for kernel in kernels]
    assert [bool(text) for text in found] == [False, False, True, True, True], found


def test_schedules_are_judged_for_segments_as_they_are_drawn():
    w = workload("grouped_matmul t=640 n=64 k=64 experts=64")
    space = space_of(w, machine())
    quantities = space.quantities(space.sample(np.random.default_rng(0), 100))
    assert (quantities["flops"] >= quantities["useful_flops"]).all()
    assert (quantities["main_bytes"] >= w.least_bytes).all()
    assert (quantities["flops"] < 4 * quantities["useful_flops"]).any()
