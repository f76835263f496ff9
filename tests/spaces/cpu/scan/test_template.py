"""The CPU template of scans: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import (
    check_bugs_are_found,
    check_sampled,
    compile_kernels,
    complaint,
    outcome,
    sampled,
)
from tilewright.spaces.cpu.scan.template import ScanTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

SCANS = {
    "prefixes": "y[r, i] = sum[j: j <= i](x[r, j])",
    "suffixes": "y[r, i] = sum[j: j >= i](x[r, j])",
    "before": "y[r, i] = sum[j: j < i](x[r, j])",
    "behind": "y[r, i] = sum[j: i < j](x[r, j])",
    "down": "y[i, r] = sum[j: j <= i](x[j, r])",
    "up, those before": "y[i, r] = sum[j: i < j](x[j, r])",
    "maps around": "s[r, i] = sum[j: j <= i](exp(x[r, j]) * w[j])\n"
    "y[r, i] = s[r, i] / (i + 1) + b[r]",
    "maps down": "s[i, r] = sum[j: j >= i](x[j, r] * b[r] + j)\ny[i, r] = relu(s[i, r]) + r",
    "two": "s[r, i] = sum[j: j <= i](x[r, j])\nt[r, i] = sum[k: k < i](x[r, k] * x[r, k])\n"
    "y[r, i] = s[r, i] * t[r, i]\n-> y, t",
    "of sums": "s[r, i] = sum[j: j < i](x[r, j])\nm[r, i] = s[r, i] / (i + 1)\n"
    "y[r, i] = sum[k: k <= i](m[r, k])",
    "of sums, down": "s[i, r] = sum[j: j >= i](x[j, r])\ny[i, r] = sum[k: k > i](s[k, r] * 0.01)",
    "suffixes of a map": "y[r, i] = sum[j: j >= i](exp(x[r, j]))",
    "turned": "y[r, i] = sum[j: j <= i](x[j, r])",
    "maxima": "m[r, i] = max[j: j <= i](x[r, j])\ny[r, i] = m[r, i] * 2",
    "minima behind": "y[r, i] = min[j: i < j](x[r, j] - w[j])",
    "products, down": "y[i, r] = prod[j: j < i](exp(x[j, r] * 0.01))",
    "maxima, up": "y[i, r] = max[j: j >= i](x[j, r])",
    "sums of maxima": "m[r, i] = max[j: j <= i](x[r, j])\n"
    "y[r, i] = sum[k: k <= i](exp(x[r, k] - m[r, k]))",
    "batches": "y[h, i, r] = sum[j: j <= i](x[h, j, r])",
}


def machine(**changes: Any) -> CpuTarget:
    small = {"threads": 3, "cores": 3, "l2_bytes": 32 << 10}
    return dataclasses.replace(this_cpu(), **{**small, **changes})


def scan(name: str, rows: int, columns: int, kind: str = "float32") -> Workload:
    text = SCANS[name]
    given = {"r": rows, "i": columns, "j": columns, "k": columns, "h": 2}
    kinds = "" if kind == "float32" else f"x: {kind}\ny: {kind}\n"
    return workload(
        kinds + text, **{a: n for a, n in given.items() if re.search(rf"\b{a}\b", text)}
    )


def space_of(w: Workload, target: CpuTarget) -> Space:
    return Space(w, target, [ScanTemplate(w, target)])


def check(w: Workload, target: CpuTarget, count: int, folder: Any, seed: int = 0) -> None:
    """Kernels of each way to divide the work, and ``count`` more, are right."""
    space = space_of(w, target)
    rows = np.unique(space.sample(np.random.default_rng(seed), 60), axis=0)
    schedules = [space.schedule(row) for row in rows]
    ways = {(s.values["lanes"], s.values["parallel_over"]): s for s in schedules}
    kernels = [space.lower(s) for s in dict.fromkeys([*ways.values(), *schedules[:count]])]
    library = compile_kernels(kernels, target, folder)
    assert [complaint(kernel, library, w, seed) for kernel in kernels] == [""] * len(kernels)


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize(("rows", "columns"), [(2, 300), (37, 70)])
def test_kernels_agree_with_the_reference(name, rows, columns, tmp_path):
    check(scan(name, rows, columns), machine(), 3, tmp_path)


@pytest.mark.parametrize("columns", [2, 15, 16, 17, 31, 32, 33, 96, 97])
@pytest.mark.parametrize("name", ["before", "behind", "up, those before"])
def test_ends_of_rows(name, columns, tmp_path):
    check(scan(name, 5, columns), machine(), 4, tmp_path)


@pytest.mark.parametrize("columns", [5, 17, 77, 131])
@pytest.mark.parametrize(
    "name", ["before", "suffixes of a map", "sums of maxima", "down", "maps down", "batches"]
)
def test_rows_that_begin_anywhere_are_streamed_from_where_vectors_are_aligned(
    name, columns, tmp_path
):
    w, target = scan(name, 9000 // columns | 1, columns), machine()  # an odd number of rows
    space = space_of(w, target)
    schedules = [space.schedule(row) for row in space.sample(np.random.default_rng(0), 40)]
    streaming = [s for s in schedules if s.values["stores"] == "streaming"][:4]
    kernels = [space.lower(s) for s in dict.fromkeys(streaming)]
    library = compile_kernels(kernels, target, tmp_path)
    assert kernels
    for kernel in kernels:
        assert "head > 0" in kernel.source.body
        assert complaint(kernel, library, w, 0) == ""


@pytest.mark.parametrize("kind", ["bfloat16", "float64"])
@pytest.mark.parametrize("name", ["suffixes", "down"])
def test_other_dtypes(name, kind, tmp_path):
    check(scan(name, 20, 75, kind), machine(), 3, tmp_path)


@pytest.mark.parametrize("vector_bytes", [16, 32])
@pytest.mark.parametrize("name", ["behind", "maps around"])
def test_other_vectors(name, vector_bytes, tmp_path):
    target = machine(vector_bytes=vector_bytes, isa="generic", bf16_dot=False)
    check(scan(name, 7, 90), target, 3, tmp_path)


@pytest.mark.parametrize("name", ["prefixes", "up, those before"])
def test_long_rows_of_equal_terms_are_added_up_in_blocks(name, tmp_path):
    w, target = scan(name, 3, 1 << 18), machine()
    kernels = sampled(space_of(w, target), 6)
    library = compile_kernels(kernels, target, tmp_path)
    x = np.full(w.make_inputs(0)["x"].shape, np.float32(0.1))
    wanted = np.float64(np.float32(0.1)) * np.arange(1 << 18)
    for kernel in kernels:
        _, found = outcome(kernel, library, {"x": x})
        if name == "prefixes":
            sums = found["y"][1] - np.float64(np.float32(0.1))
        else:
            sums = found["y"][::-1, 1]
        assert (abs(sums - wanted) <= 8 * np.finfo(np.float32).eps * wanted + 1e-7).all()


@pytest.mark.parametrize("name", ["prefixes", "suffixes", "down"])
def test_infinities_and_nans_stay_behind_where_they_are(name, tmp_path):
    w, target = scan(name, 19, 130), machine()
    kernels = sampled(space_of(w, target), 8)
    library = compile_kernels(kernels, target, tmp_path)
    for values in ((np.inf,), (-np.inf,), (np.nan,), (np.inf, -np.inf)):
        inputs = w.make_inputs(0)
        for place, value in enumerate(values):
            at = (3, 40 + place) if name != "down" else (40 + place, 3)
            inputs["x"][at] = value
        for kernel in kernels:
            assert complaint(kernel, library, w, 0, inputs) == ""


def test_scans_are_parts_of_programs_that_reduce_otherwise(tmp_path):
    text = """m[r] = max[c](x[r, c])
s[r, i] = sum[j: j <= i](exp(x[r, j] - m[r]))
t[r, i] = sum[k: k >= i](x[r, k] * m[r])
y[r] = sum[i](s[r, i] * t[r, i])
"""
    w, target = workload(text, r=9, c=70, i=70, j=70, k=70), machine()
    found = serving(w, target)
    assert not isinstance(found, str)
    (template,) = found.templates
    space = Space(w, target, [template(w, target)])
    parts = space.templates[template.name].parts
    assert [part.template.name for part in parts].count("scan") == 2
    check_sampled(space, 3, 0, tmp_path)


# what is broken: the scan, the values of decisions, a pattern, and its replacement
BUGS = {
    "a carry is lost": ("prefixes", {}, r"tw_carry\(&c0, &e0, .*\);", ""),
    "half a block": ("prefixes", {"vectors": 2}, r"tw_final\(a0_1\)\);", "tw_final(a0_0));"),
    "no sum of the vector before": ("prefixes", {"vectors": 2}, r" \+ tw_final\(a0_0\)", ""),
    "the term itself": ("before", {}, r"tw_behind\(.*, (a0_\d)\)", r"\1"),
    "the vector before": ("before", {"vectors": 2}, r"tw_behind\(a0_0", "tw_behind(tw_set(0)"),
    "lanes past the row": ("suffixes of a map", {}, r"tw_first\(", "tw_first(1 + "),
    "the last columns": ("prefixes", {}, r"j < end; j \+=", "j + 4 < end; j +="),
    "the other way": ("suffixes", {}, r"const long j = begin \+ \(.*;", "const long j = t;"),
    "all sums of workers": (
        "prefixes", {"parallel_over": "columns"}, r"w < worker;", "w < worker + 1;",
    ),
    "no sums of workers": ("prefixes", {"parallel_over": "columns"}, r"w < worker;", "w < 0;"),
    "sums of workers before": (
        "suffixes", {"parallel_over": "columns"}, r"long w = worker \+ 1", "long w = worker",
    ),
    "another worker's columns": (
        "prefixes", {"parallel_over": "columns"}, r"L \* worker", "L * (worker ? 0 : 1)",
    ),
    "a carry is lost, down": ("down", {}, r"tw_carry\(&c0\[v\], &e0\[v\], a0\[v\]\);", ""),
    "a block counts twice, down": ("down", {}, r"a0\[v\] = tw_set\(0.0f\);", ""),
    "the term itself, up": (
        "up, those before", {}, r"(const vf s0 = .*;)\n(.*)(a0\[v\] \+= .*;)", r"\3\n\2\1",
    ),
    "columns before the aligned ones twice": (
        "prefixes", {"stores": "streaming"}, r"first = begin \+ head", "first = begin",
    ),
    "lanes past those before": (
        "suffixes of a map", {"stores": "streaming"}, r"tw_first\(head\)", "tw_first(1 + head)",
    ),
    "columns behind the last whole vector": (
        "prefixes", {"stores": "streaming"}, r"full < end", "full < begin",
    ),
    "rows before the aligned ones": ("down", {"stores": "streaming"}, r"head > 0", "head > 9"),
    "rows behind the last whole vector": (
        "down", {"stores": "streaming"}, r"n - k\)", "n - k - 1)",
    ),
    "a carry is lost, maxima": ("maxima", {}, r"c0 = tw_max\(c0, tw_final.*;", ""),
    "zero for nothing": ("minima behind", {}, r"c0 = tw_set\(.*\);", "c0 = tw_set(0.0f);"),
    "lanes past the row, maxima": ("minima behind", {}, r"tw_first\(", "tw_first(1 + "),
    "an extreme of workers is lost": (
        "maxima", {"parallel_over": "columns"}, r"c0 = tw_max\(c0, sums\[.*;", ";",
    ),
    "the same rows twice": ("down", {}, r"const long r = .*;", "const long r = first;"),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_every_planted_bug_is_found(bug, tmp_path):
    name, values, pattern, replacement = BUGS[bug]
    target = machine(vector_bytes=16, isa="generic", bf16_dot=False)
    rows = 5 if "parallel_over" in values else 90 if "stores" in values else 45
    w = scan(name, rows, 131)
    schedule = next(
        s
        for s in space_of(w, target).enumerate()
        if s.values["workers"] == 3
        and all(s.values[key] == v for key, v in {"parallel_over": "rows", **values}.items())
    )
    right = space_of(w, target).lower(schedule)
    check_bugs_are_found(right, {bug: (pattern, replacement)}, w, target, tmp_path, count=0)


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "no reduction over prefixes"),
        (workload("y[r,c] = x[r,c] + 1", r=4, c=8), "nothing is reduced"),
        (workload("y[r,i] = sum[j: j <= i](x[r,j] * w[i])", r=4, i=8, j=8), "alike for all"),
        (workload(SCANS["prefixes"], r=4, i=8, j=9), "8 prefixes of 9 terms"),
        (workload(SCANS["prefixes"], r=4, i=1, j=1), "one element"),
        (
            workload(
                SCANS["prefixes"] + "\nz[r,i] = sum[k: k >= i](x[r,k])\n-> y, z", r=4, i=8, j=8, k=8
            ),
            "the other way",
        ),
        (
            workload("s[r,i] = sum[j: j <= i](x[r,j])\ny[r,i] = s[r,7 - i]", r=4, i=8, j=8),
            "another row",
        ),
        (
            workload("s[i] = sum[j: j <= i](x[j])\ny[i,n] = s[i] * w[i,n]\n-> s, y", i=8, j=8, n=3),
            "the same along n",
        ),
        (
            workload("t: int32[r](index < 9); y[r,i] = sum[j: j <= i](x[t[r],j])", r=4, i=8, j=8),
            "tables choose rows",
        ),
        (workload("x: float16; " + SCANS["prefixes"], r=4, i=8, j=8), "float16"),
        (workload("x: int32; " + SCANS["prefixes"], r=4, i=8, j=8), "int32"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in str(ScanTemplate.why_not(w, this_cpu()))


def test_no_quadratic_kernel_serves_what_scans_do():
    found = serving(scan("maps around", 9, 40), machine())
    assert not isinstance(found, str)
    assert [template.name for template in found.templates] == ["scan"]


def test_quantities_are_possible_and_grow_with_columns():
    few, many = (
        checked_quantities(space_of(scan("maps around", 9, n), machine()), 1, 64)
        for n in (300, 9000)
    )
    for name in ("flops", "instructions", "near_bytes"):
        assert many[name].min() > few[name].max()


def test_every_rule_refuses_something_and_says_why():
    works = (scan("two", 3, 40), scan("down", 4000, 300), scan("prefixes", 300, 4000))
    spaces = [
        space_of(w, machine(threads=8, cores=8, vector_registers=8, l1_bytes=8192)) for w in works
    ]
    assert not silent_rules(spaces, 200)
