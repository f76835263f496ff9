"""The CPU template for products of placed operands: its space, rules, and what kernels compute."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, check_sampled, sampled
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.windows.copies.ordered import OrderedCopy
from tilewright.spaces.cpu.windows.template import WindowsTemplate
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

EXTENTS = {"i": 13, "j": 37, "k": 5, "l": 19}
IMAGES = {
    "image": "conv2d n=2 c=5 h=13 w=11 o=19 r=3 s=3 padding=1",
    "channels last": "conv2d n=2 c=5 h=13 w=11 o=19 r=3 s=3 padding=1 layout=NHWC",
    "strides": "conv2d n=1 c=3 h=23 w=29 o=17 r=7 s=7 padding=3 stride=2",
    "strides, channels last": (
        "conv2d n=1 c=3 h=23 w=29 o=17 r=7 s=7 padding=3 stride=2 layout=NHWC"
    ),
    "dilation": "conv2d n=1 c=7 h=17 w=19 o=8 r=3 s=2 padding=2 dilation=3",
    "dilation, channels last": (
        "conv2d n=1 c=7 h=17 w=19 o=8 r=3 s=2 padding=2 dilation=3 stride=2 layout=NHWC"
    ),
    "groups": "conv2d n=2 c=6 h=9 w=10 o=15 r=3 s=3 padding=1 groups=3",
    "groups, channels last": (
        "conv2d n=2 c=6 h=9 w=10 o=33 r=3 s=3 padding=1 groups=3 layout=NHWC"
    ),
    "depthwise": "conv2d n=1 c=4 h=9 w=10 o=4 r=3 s=3 padding=1 groups=4",
    "one element": "conv2d n=1 c=1 h=1 w=1 o=1 r=3 s=3 padding=1",
    "one pixel": "conv2d n=1 c=4 h=3 w=3 o=9 r=5 s=5 padding=1 layout=NHWC",
    "one by one": "conv2d n=3 c=8 h=9 w=9 o=24 r=1 s=1 stride=2 layout=NHWC",
    "small images": "conv2d n=1 c=20 h=7 w=7 o=40 r=3 s=3 padding=1",
    "sequence": "conv1d n=2 c=6 w=61 o=20 r=5 padding=2",
    "sequence, channels last": "conv1d n=2 c=6 w=61 o=20 r=5 stride=2 padding=4 layout=NWC",
    "bfloat16": "conv2d n=1 c=6 h=9 w=10 o=16 r=3 s=3 padding=1 dtype=bfloat16",
    "bfloat16, channels last": (
        "conv2d n=1 c=6 h=9 w=10 o=16 r=3 s=3 padding=1 dtype=bfloat16 layout=NHWC out=float32"
    ),
    "fused": (
        'conv2d n=2 c=4 h=9 w=10 o=17 r=3 s=3 padding=1 epilogue="relu(x + bias[o]) + z[n,o,p,q]"'
    ),
    "fused, channels last": (
        "conv2d n=2 c=4 h=9 w=10 o=17 r=3 s=3 padding=1 layout=NHWC "
        'epilogue="max(x * scale[o] - z[n,o,p,q], gelu(x)) / size[]"'
    ),
}
PROGRAMS = {
    "a correlation": "x: float32[13]; y[i,j] = sum[k](inside(x[i + 2*k - 3], 2) * f[k,j]) * g[i]",
    "both sides have windows": "y[i,j] = sum[k](x[i + k] * f[j + 2*k])",
    "both have borders": (
        "a: float32[13]; b: float32[30]; "
        "y[i,j] = sum[k](inside(a[i + k - 2], 1) * inside(b[j - 3*k + 4*k], 0))"
    ),
    "columns gathered": "y[l,i,j] = sum[k](x[i,k] * f[2*j + 3*l + k])",
    "filters in front": "y[i,j] = sum[k,l](x[i + k, l] * f[k,l,j])",
    "selected": "y[i,j] = select(sum[k](x[i+k] * f[k,j]) > b[j], b[j], -1)",
}


def machine(**changes: int) -> CpuTarget:
    caches = {"l1_bytes": 32 << 10, "l2_bytes": 64 << 10, "l3_bytes": 1 << 20}
    return dataclasses.replace(this_cpu(), **{"threads": 1, **caches, **changes})


def program(text: str) -> Workload:
    """The workload of a text, with the extents that it uses."""
    used = {axis: n for axis, n in EXTENTS.items() if re.search(rf"\b{axis}\b", text)}
    return workload(text, **used)


def space_of(w: Workload, target: CpuTarget) -> Space:
    assert WindowsTemplate.refuses(w, target) is None
    return Space(w, target, [WindowsTemplate(w, target)])


@pytest.mark.parametrize("name", IMAGES)
def test_convolutions_agree_with_the_reference(name, tmp_path):
    check_sampled(space_of(workload(IMAGES[name]), machine()), 5, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", IMAGES)
def test_more_schedules_agree_with_the_reference(name, seed, tmp_path):
    check_sampled(
        space_of(workload(IMAGES[name]), machine(threads=seed, cores=seed)), 12, seed, tmp_path
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_program_of_placed_operands_agrees_with_the_reference(name, tmp_path):
    check_sampled(space_of(program(PROGRAMS[name]), machine()), 6, 0, tmp_path)


FILTERS = {
    "image": "conv2d n=2 c=5 h=13 w=30 o=19 r=3 s=3 padding=1",
    "wide filter": "conv2d n=1 c=3 h=11 w=40 o=9 r=5 s=7 padding=2",
    "dilation": "conv2d n=1 c=7 h=17 w=37 o=8 r=3 s=2 padding=2 dilation=3",
    "groups": "conv2d n=2 c=6 h=9 w=20 o=15 r=3 s=3 padding=1 groups=3",
    "no borders": "conv2d n=1 c=9 h=8 w=21 o=10 r=2 s=3",
    "sequence": "conv1d n=2 c=6 w=61 o=20 r=5 padding=2",
    "bfloat16": "conv2d n=2 c=5 h=13 w=30 o=19 r=3 s=3 padding=1 dtype=bfloat16",
}


@pytest.mark.parametrize("name", FILTERS)
def test_gradients_by_a_filter_agree(name, tmp_path):
    """Columns are places in a filter, in runs that are shorter than those of the depth."""
    w = workload_of(gradient(FILTERS[name], "filter"))
    space = space_of(w, machine(threads=2, cores=2))
    found = sampled(space, 5)
    assert any("tw_transpose_apart_" in kernel.source.body for kernel in found)
    check_sampled(space, 5, 0, tmp_path)


@pytest.mark.parametrize("name", ["image", "dilation", "bfloat16"])
def test_gradients_by_an_image_read_a_copy_of_the_filter_in_their_order(name, tmp_path):
    w = workload_of(gradient(FILTERS[name], "image"))
    space = space_of(w, machine(threads=2, cores=2))
    assert isinstance(space.templates["windows"].view.left.padded, OrderedCopy)
    check_sampled(space, 5, 0, tmp_path)


@pytest.mark.parametrize("name", ["groups", "channels last", "fused", "bfloat16"])
def test_workers_share_all_of_the_output(name, tmp_path):
    check_sampled(space_of(workload(IMAGES[name]), machine(threads=6, cores=6)), 8, 2, tmp_path)


@pytest.mark.parametrize(("vector_bytes", "isa"), [(16, "generic"), (64, "generic")])
@pytest.mark.parametrize("name", ["small images", "strides, channels last"])
def test_other_vectors(name, vector_bytes, isa, tmp_path):
    target = dataclasses.replace(
        machine(), vector_bytes=vector_bytes, isa=isa, bf16_dot=False, vector_registers=32
    )
    check_sampled(space_of(workload(IMAGES[name]), target), 3, 0, tmp_path)


FIXED = {"tile_rows": 3, "tile_vectors": 2, "order": "rows_outer", "unroll": 1}
FIXED |= {"row_workers": 1, "column_workers": 1, "batch_workers": 1}
# what is broken: pattern, replacement of its first occurrence in every kernel
BUGS = {
    "channels last": {
        "no border in front": (r"line\[i\] = 0.0f", "line[i] = line[i]"),
        "a line of border is not cleared": (r"i < 39; i\+\+\) line", "i < 36; i++) line"),
        "a border is one element short": (r"i = 36;", "i = 37;"),
        "a line too many": (r"% 11\) < 10", "% 11) < 11"),
        "a line too few": (r"% 11\) >= 1", "% 11) >= 3"),
        "a copy is one line off": (r"\) - 33, 132", ") - 66, 132"),
        "a copy leaves a pixel out": (r"- 33, 132", "- 33, 108"),
        "a stride for a dilation": (r"78 \* t0 \+ 6 \* t1", "39 * t0 + 6 * t1"),
        "a window's column is passed over": (r"78 \* t0 \+ 6 \* t1", "78 * t0 + 3 * t1"),
        "panels are one turn off": (r"48 \* t0 \+ 24 \* t1", "24 * t0 + 24 * t1"),
        "a turn is left out": (r"t1 < 2", "t1 < 1"),
        "a packed vector too few": (r"\(left \+ 3\) / 4", "left / 4"),
        "the tail of the depth is not packed": (r"k0_most < 5 \? k0_most : 5", "4"),
        "an image for a line": (r"429 \* \(tile / 8\)", "312 * (tile / 8)"),
        "rows go on in the next line": (r"18 \* \(tile % 2\)", "15 * (tile % 2)"),
        "pixels side by side for strides": (r"ak \+ 6\)", "ak + 3)"),
    },
    "channels first": {
        "a run goes on": (r"tw_least\(6 - \(column % 6\), left - done\)", "left - done"),
        "a run begins too early": (r"24 \* \(column / 6\)", "12 * (column / 6)"),
        "a run is gathered side by side": (r"k2 \+ 8 \* k3, 2,", "k2 + 8 * k3, 1,"),
        "a run is one short": (r"done \+= run", "done += run + 1"),
        "the depth is one channel short": (r"k0_most < 3 \? k0_most : 3", "2"),
        "a window's line is passed over": (r"12 \* k1 \+ k2", "24 * k1 + k2"),
        "all panels are the first": (r"pr \+ 144 \* m1", "pr"),
        "one image for all": (r"396 \* n0", "0 * n0"),
        "one output for all": (r"300 \* n0", "0 * n0"),
        "a filter too far": (r"54 \* tile", "51 * tile"),
    },
    "by the filter": {
        "a place within a filter": (r"at\[i\] = \(\(column % 3\)", "at[i] = ((column % 2)"),
        "a channel for a line": (r"165 \* \(column / 9\)", "15 * (column / 9)"),
        "places of the first panel": (r"column = first \+ \(8 \* j0\)", "column = first"),
        "places of the first block": (r"column = first", "column = 0 * first"),
        "places of the first vector": (r"at \+ \(4 \* k2\)", "at"),
        "a line of terms too short": (r"13 - \(4 \* k1\)", "12 - (4 * k1)"),
        "a line of the image for two": (r"p \+ 15 \* k0", "p + 15 * (k0 / 2)"),
    },
}
IMAGE = "conv2d n=2 c=3 h=9 w=11 o=10 r=3 s=2 padding=1 stride=2"
BROKEN = {
    "channels last": workload(f"{IMAGE} dilation=2 layout=NHWC"),
    "channels first": workload(IMAGE),
    "by the filter": workload_of(
        gradient("conv2d n=2 c=3 h=9 w=13 o=7 r=3 s=3 padding=1", "filter")
    ),
}


@pytest.mark.parametrize("layout", BUGS)
def test_every_planted_bug_is_found(layout, tmp_path):
    w = BROKEN[layout]
    target = dataclasses.replace(
        machine(vector_bytes=16), isa="generic", bf16_dot=False, flags=("-O0",)
    )
    columns = 16 if layout == "by the filter" else 64
    values = {**FIXED, "pack_right": True, "block_depth": 128, "block_columns": columns}
    template = WindowsTemplate(w, target)
    chosen = tuple((d.name, values[d.name]) for d in template.decisions)
    right = template.lower(Schedule("windows", chosen))
    check_bugs_are_found(right, BUGS[layout], w, target, tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("matmul m=4 n=4 k=4", "product of matrices as they lie"),
        ("conv2d n=1 c=64 h=9 w=9 o=8 r=1 s=1", "product of matrices as they lie"),
        ("softmax r=4 c=8", "needs one sum of products"),
        ("conv2d n=1 c=4 h=9 w=9 o=8 r=3 s=3 dtype=float64", "image is float64; allowed: float32"),
        ("conv2d n=1 c=4 h=9 w=9 o=4 r=3 s=3 groups=4 layout=NHWC", "the fastest axis of y"),
        ('"y[i,j] = sum[k](x[4 - i + k] * f[k,j])" i=4 j=5 k=3', "runs backwards along i"),
        (
            '"x: float32[4, 6](leading=8); y[i,j,l] = sum[k](inside(x[i, j+k-1], 0) * f[k,l])" '
            "i=4 j=6 k=3 l=5",
            "a slice of a larger array",
        ),
        (
            '"z: float32[3]; y[i,j] = sum[k](x[i+k] * f[k,j]) + inside(z[i], 0)" i=4 j=5 k=3',
            "leaves z",
        ),
    ],
)
def test_refusals_say_why(text, words):
    reason = WindowsTemplate.refuses(workload(text), this_cpu())
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_names_and_writing_make_no_difference_to_the_space():
    first = workload("y[i,j] = relu(sum[k](x[i + k] * f[k,j]))", i=300, j=200, k=9)
    other = workload("v[q,p] = max(sum[a](g[a,p] * u[a + q]), 0)", q=300, p=200, a=9)
    spaces = [space_of(w, machine()) for w in (first, other)]
    rows = [space.sample(np.random.default_rng(0), 50) for space in spaces]
    assert spaces[0].count() == spaces[1].count() > 20
    assert (rows[0] == rows[1]).all()


def test_every_rule_refuses_something_and_says_why():
    texts = [
        "conv2d n=4 c=64 h=30 w=30 o=8 r=3 s=3 padding=1",
        "conv2d n=1 c=600 h=9 w=9 o=300 r=3 s=3 padding=1 layout=NHWC",
        "conv2d n=1 c=600 h=9 w=9 o=300 r=3 s=3 layout=NHWC dtype=bfloat16",
        "conv1d n=3 c=4 w=7 o=3 r=3 padding=1",
    ]
    target = machine(threads=8, cores=8)
    assert not silent_rules([space_of(w, target) for w in map(workload, texts)], 400)


def test_a_register_tile_fills_registers_by_its_rows_and_columns_once_a_term():
    """Outputs of 4 lines of 8 and 32 channels, of 16 channels and 3x3 places each."""
    outputs, terms, lanes = 4 * 8 * 32, 16 * 3 * 3, 8
    target = machine(vector_bytes=32)
    space = space_of(workload("conv2d n=1 c=16 h=6 w=10 o=32 r=3 s=3 layout=NHWC"), target)
    rows = space.sample(np.random.default_rng(0), 100)
    found, whole = space.quantities(rows), 0
    for i, values in enumerate(space.schedule(row).values for row in rows):
        high, wide = int(values["tile_rows"]), int(values["tile_vectors"]) * lanes
        if 8 % high or 32 % wide:
            continue
        whole += 1
        tiles = outputs / (high * wide)
        passes = found["tile_visits"][i] / tiles  # blocks of terms: each adds to the sums
        read = 4 * (tiles * terms * (high * lanes + wide) + 2 * outputs * passes)
        assert found["register_bytes"][i] == read
    assert whole


def test_copies_that_no_cache_holds_go_through_main_memory():
    w = workload("conv2d n=4 c=8 h=20 w=20 o=19 r=3 s=3 padding=1")  # 62 KiB with its borders
    large, small = (space_of(w, machine(l3_bytes=size)) for size in (1 << 20, 1 << 15))
    rows = large.sample(np.random.default_rng(0), 100)
    rows = large.rows([s for s in map(large.schedule, rows) if s in small])
    held, moved = large.quantities(rows), small.quantities(rows)
    copied = moved["main_bytes"] - held["main_bytes"]
    assert (copied > 0).any()
    in_place = [not large.schedule(row).values["pack_right"] for row in rows]
    assert any(in_place)
    assert (copied[in_place] == held["packing_bytes"][in_place]).all()


def test_a_packed_block_that_l2_has_no_room_for_costs_more():
    w = workload("conv2d n=1 c=64 h=8 w=8 o=512 r=3 s=3 layout=NHWC")  # a filter of 1.1 MiB
    template = WindowsTemplate(w, machine(l2_bytes=1 << 20))
    columns = {d.name: np.array([d.values[-1]] * 2) for d in template.decisions}
    columns |= {"block_columns": np.array([64, 512]), "tile_vectors": np.array([2, 2])}
    within, beyond = template.quantities(columns)["packing_bytes"]
    assert beyond == 1.5 * within == 3 * 4 * 64 * 9 * 512


@pytest.mark.parametrize("name", IMAGES)
def test_quantities_are_complete_and_possible(name):
    space = space_of(workload(IMAGES[name]), machine())
    quantities = checked_quantities(space, seed=0, schedules=100)
    assert (quantities["flops"] >= quantities["useful_flops"]).all()
