"""The CPU template along kept axes: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import (
    check_bugs_are_found,
    check_sampled,
    compile_kernels,
    complaint,
    sampled,
)
from tests.spaces.derivation.kept.random_windows import random_window
from tilewright.spaces.cpu.kept.template import KeptTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

DEPTHWISE = {"r": 3, "s": 3, "padding": 1}
NAMED = {
    "pooling": workload("max_pool2d", n=1, c=5, h=13, w=37, r=3, stride=2, padding=1),
    "windows apart": workload("avg_pool2d", n=2, c=3, h=7, w=9, r=2, stride=2),
    "NCHW": workload("conv2d", n=1, c=5, h=13, w=11, o=5, groups=5, **DEPTHWISE),
    "NHWC": workload(
        "conv2d", n=2, c=20, h=9, w=14, o=20, groups=20, layout="NHWC",
        epilogue="relu(x + bias[o])", **DEPTHWISE,
    ),
    "strided": workload(
        "conv2d", n=1, c=3, h=14, w=41, o=3, groups=3, stride=2, **DEPTHWISE
    ),
    "dilated": workload("conv2d", n=1, c=3, h=17, w=29, o=3, groups=3, dilation=3, **DEPTHWISE),
    "two outputs of a channel": workload("conv2d", n=2, c=3, h=9, w=9, o=6, groups=3, **DEPTHWISE),
    "columns": workload("y[c] = sum[r](x[r, c])", r=137, c=53),
    "few columns": workload("y[c] = max[r](x[r, c] * z[r]) / 2", r=137, c=3),
    "one column of many": workload("y[n, c] = sum[r](x[n, r, c])", n=7, r=31, c=1),
    "bfloat16": workload(
        "x: bfloat16; y: bfloat16; y[n, c] = sum[h, w](x[n, h, w, c]) / size(h, w)",
        n=2, h=7, w=7, c=37,
    ),
    "float64": workload("x: float64; y[n, c] = sum[h](x[n, h, c])", n=2, h=7, c=37),
    "an axis kept by one stage and reduced by the other": workload(
        "s[i] = sum[j](x[j, i]); y[j] = 2 * s[j]", i=40, j=31
    ),
    "two results": workload("s[c] = sum[r](x[r, c]); y[c] = s[c] / 2; -> s, y", r=9, c=20),
}  # fmt: skip

GROUPS = workload(
    "conv2d", n=2, c=3, h=5, w=7, o=24, r=3, s=2, stride=2, padding=1, groups=3, layout="NHWC"
)


def machine(**changes: Any) -> CpuTarget:
    caches = {"l1_bytes": 32 << 10, "l2_bytes": 64 << 10, "l3_bytes": 1 << 20}
    return dataclasses.replace(this_cpu(), **{"threads": 1, **caches, **changes})


def space_of(w: Workload, target: CpuTarget) -> Space:
    return Space(w, target, [KeptTemplate(w, target)])


@pytest.mark.parametrize("name", NAMED)
def test_kernels_agree_with_the_reference(name, tmp_path):
    check_sampled(space_of(NAMED[name], machine()), 2, 1, tmp_path)


@pytest.mark.parametrize("name", ["NHWC", "columns", "few columns", "two results"])
def test_workers_share_what_is_kept_or_what_is_reduced(name, tmp_path):
    check_sampled(space_of(NAMED[name], machine(threads=3, cores=3)), 3, 2, tmp_path)


def test_what_does_not_fit_the_caches_may_be_streamed(tmp_path):
    w, target = workload("y[n, c] = sum[r](x[n, r, c])", n=40, r=2, c=1101), machine()
    small = dataclasses.replace(target, l3_bytes=1 << 18)
    assert not any("tw_stream" in kernel.source.body for kernel in sampled(space_of(w, target), 20))
    assert any("tw_stream" in kernel.source.body for kernel in sampled(space_of(w, small), 6))
    check_sampled(space_of(w, small), 6, 0, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_random_windows_agree_with_the_reference(seed, tmp_path):
    check_random(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 60))
def test_more_random_windows_agree_with_the_reference(seed, tmp_path):
    check_random(seed, tmp_path)


def check_random(seed: int, folder: Path) -> None:
    made = random_window(seed, dtypes=("float32", "float32", "bfloat16", "float64"))
    threads = 1 + seed % 3
    check_sampled(
        space_of(workload_of(made), machine(threads=threads, cores=threads)), 2, seed, folder
    )


# tiles along groups (a3) and along rows of the image (a2), and whether a filter is turned for them
@pytest.mark.parametrize(
    ("across", "turns", "order", "turned"),
    [("a3", 1, "inner", True), ("a3", 2, "inner", False), ("a3", 3, "outer", False),
     ("a2", 3, "inner", True), ("a2", 3, "outer", False)],
)  # fmt: skip
def test_filters_are_turned_for_tiles_of_one_group_alone(across, turns, order, turned, tmp_path):
    target = dataclasses.replace(machine(vector_bytes=16), isa="generic", bf16_dot=False)
    values = {
        "vectors": 1,
        "coarsened_axis": across,
        "coarsening": turns,
        "unroll": 2,
        "order": order,
    }
    values |= {"streaming_stores": False, "parallel_over": "kept", "workers": 1}
    space = Space(GROUPS, target, [KeptTemplate(GROUPS, target)])
    kernel = space.lower(Schedule("kept", tuple(values.items())))
    library = compile_kernels([kernel], target, tmp_path)
    assert complaint(kernel, library, GROUPS, 0) == ""
    assert ("tw_turn_float32(x1" in kernel.source.body) == turned


@pytest.mark.parametrize(("vector_bytes", "isa"), [(16, "generic"), (16, "sse2"), (64, "generic")])
def test_other_vectors(vector_bytes, isa, tmp_path):
    if isa not in ("generic", this_cpu().isa) and this_cpu().architecture != "x86_64":
        pytest.skip(f"no {isa} here")
    target = machine(vector_bytes=vector_bytes)
    target = dataclasses.replace(target, isa=isa, bf16_dot=False)
    check_sampled(space_of(NAMED["strided"], target), 2, 0, tmp_path)


# what is broken: pattern, replacement of its first occurrence in the kernel
BUGS = {
    "a border is passed over": (r"\(a1 \+ 1\) < 9\)", "(a1 + 1) < 8)"),
    "a border is read": (r"\(a1 \+ -1\) >= 0\)", "(a1 + -1) >= -1)"),
    "the last tiles are left out": (r"a2_0 < 3;", "a2_0 < 2;"),
    "a tile is in the place of another": (r"a2 = 3 \* a2_0 \+ 3;", "a2 = 3 * a2_0 + 2;"),
    "a term counts twice": (r"(s0_0 = tw_fma\(.*, s0_0\);)", r"\1 \1"),
    "a term of a neighbour": (r"(s0_0 = tw_fma\(.*), s0_0\)", r"\1, s1_0)"),
    "no clean start": (r"vf s2_0 = tw_set\(0.0f\)", "vf s2_0 = tw_set(1.0f)"),
    "another image's window": (r"2268 \* a0", "2267 * a0"),
    "the last lanes are stored whole": (
        r"tw_store_most_float32\(([^;]*), 2\);",
        r"tw_store_most_float32(\1, 4);",
    ),
    "a lane too few is stored": (
        r"tw_store_most_float32\(([^;]*), 2\);",
        r"tw_store_most_float32(\1, 1);",
    ),
    "the filter of another tap": (r"held0 \+ 32\)", "held0 + 40)"),
    "the filters of other lanes": (r"held0 \+ 36\)", "held0 + 32)"),
    "the last taps are not turned": (r"tw_turn_float32\(.*held0 \+ 40, 8\);", ""),
    "a filter is turned too soon": (r"const long a3 = 8 \* a3_0;", "const long a3 = 4 * a3_0;"),
    "another channel's bias": (r"x2 \+ \(a3 \+ 4\)", "x2 + (a3)"),
}


def test_every_planted_bug_is_found(tmp_path):
    w = workload(
        "conv2d", n=2, c=18, h=9, w=14, o=18, groups=18, layout="NHWC",
        epilogue="relu(x + bias[o])", **DEPTHWISE,
    )  # fmt: skip
    values = {"vectors": 2, "coarsened_axis": "a2", "coarsening": 3, "unroll": 2, "order": "outer"}
    values |= {"streaming_stores": False, "parallel_over": "kept", "workers": 1}
    target = dataclasses.replace(machine(vector_bytes=16), isa="generic", bf16_dot=False)
    target = dataclasses.replace(target, flags=("-O0",))
    space = Space(w, target, [KeptTemplate(w, target)])
    right = space.lower(Schedule("kept", tuple(values.items())))
    check_bugs_are_found(right, BUGS, w, target, tmp_path)


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "reductions"),
        (workload("y[i, j] = 2 * x[i, j]", i=4, j=8), "reductions: none"),
        (workload("y: float16; x: float16; y[j] = sum[i](x[i, j])", i=4, j=8), "float16"),
        (workload("t: int32[5](index < 9); y[j] = sum[i](x[t[i], j])", i=5, j=8), "a table"),
        (
            workload("conv2d", n=1, c=4, h=5, w=5, o=8, r=3, s=3, groups=4, layout="NHWC"),
            "not equally far apart",
        ),
    ],
)
def test_refusals_say_why(w, words):
    assert words in KeptTemplate.why_not(w, this_cpu())


@pytest.mark.parametrize("name", NAMED)
def test_programs_along_kept_axes_are_served(name):
    assert KeptTemplate.why_not(NAMED[name], this_cpu()) is None


def test_a_kernel_says_what_it_writes():
    (kernel, *_) = sampled(space_of(NAMED["two results"], machine()), 1)
    assert [array.name for array in kernel.call.written] == ["s", "y"]


def test_names_and_writing_make_no_difference_to_the_space():
    first = workload("y[c] = sum[r](x[r, c])", r=300, c=200)
    other = workload("v[q] = sum[p](u[p, q])", p=300, q=200)
    spaces = [Space(w, machine(), [KeptTemplate(w, machine())]) for w in (first, other)]
    rows = [space.sample(np.random.default_rng(0), 50) for space in spaces]
    assert spaces[0].count() == spaces[1].count() > 5
    assert (rows[0] == rows[1]).all()


def test_every_rule_refuses_something_and_says_why():
    many = workload("avg_pool2d", n=1, c=3, h=40, w=200, r=7, padding=3)
    large = workload("y[c] = sum[r](x[r, c])", r=9000, c=200)
    target = machine(threads=8, cores=8)
    works = (NAMED["NHWC"], NAMED["columns"], many, large)
    assert not silent_rules([Space(w, target, [KeptTemplate(w, target)]) for w in works], 120)


@pytest.mark.parametrize(("text", "read"), [("x[r, c]", 1), ("x[r, c] * z[r, c]", 2)])
def test_each_element_is_loaded_once(text, read):
    w, target = workload(f"y[c] = sum[r]({text})", r=137, c=53), machine(vector_bytes=32)
    space = Space(w, target, [KeptTemplate(w, target)])
    found = space.quantities(space.sample(np.random.default_rng(0), 100))
    lanes, vectors, entries = 8, 7, 137
    assert (found["register_bytes"] == 4 * lanes * vectors * entries * read).all()


def test_vectors_of_windows_that_overlap_are_read_from_two_lines():
    found = []
    for step in (1, 64):
        w, target = workload(f"y[p] = sum[r](x[p + {step} * r] * f[r])", p=256, r=4), machine()
        space = Space(w, target, [KeptTemplate(w, target)])
        found.append(space.quantities(space.sample(np.random.default_rng(0), 100)))
    assert found[0]["register_bytes"].max() > 1.2 * found[1]["register_bytes"].max()


def test_partial_results_of_workers_are_written_and_read_once_more():
    w, target = NAMED["columns"], machine(threads=2, cores=2, vector_bytes=32)
    space = Space(w, target, [KeptTemplate(w, target)])
    found = space.quantities(rows := space.sample(np.random.default_rng(0), 100))
    partial = {"kept": 0, "reduced": 2 * 4 * 53 * target.threads}
    extra = [partial[str(space.schedule(row).values["parallel_over"])] for row in rows]
    assert set(extra) == set(partial.values())
    for level in ("near_bytes", "middle_bytes"):
        assert len(set(found[level] - extra)) == 1


@pytest.mark.parametrize("name", NAMED)
def test_quantities_are_complete_and_possible(name):
    w, target = NAMED[name], machine(threads=2, cores=2)
    checked_quantities(Space(w, target, [KeptTemplate(w, target)]), seed=0, schedules=200)


def test_more_taps_than_are_turned_are_gathered_one_lane_after_the_other():
    text, loads = "y[p, c] = sum[r](x[p + r, c] * f[c, r])", {}
    for taps in (128, 129):
        w, target = workload(text, p=8, c=64, r=taps), machine()
        space = Space(w, target, [KeptTemplate(w, target)])
        rows = list(space.sample(np.random.default_rng(0), 200))
        kernels = [space.lower(space.schedule(row)) for row in rows[:4]]
        gathers = {bool(re.search(r"tw_gather_\w+\(", k.source.body)) for k in kernels}
        assert gathers == {taps == 129}
        loads[taps] = space.quantities(np.array(rows))["register_bytes"].min() / taps
    assert loads[129] > 1.5 * loads[128]


def test_filters_that_lie_apart_are_turned_once_for_a_block_of_channels():
    kernels = sampled(space_of(NAMED["NHWC"], machine()), 8)
    assert all("tw_turn_float32" in kernel.source.body for kernel in kernels)
    assert not any(re.search(r"tw_gather_\w+\(x1", kernel.source.body) for kernel in kernels)


def test_filters_that_are_turned_for_each_line_of_an_image_cost_more_than_once_for_all():
    template = KeptTemplate(NAMED["NHWC"], machine())
    rows = [[d.values[0] for d in template.decisions] for _ in range(3)]
    columns = {
        d.name: np.array(v)
        for d, v in zip(template.decisions, zip(*rows, strict=True), strict=True)
    }
    columns["order"] = np.array(["outer", "middle", "inner"])
    once, lines, pixels = template.quantities(columns)["instructions"]
    assert once < lines < pixels
