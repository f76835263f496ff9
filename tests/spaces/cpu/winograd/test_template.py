"""The CPU template for sums over short windows: its space, rules, and what kernels compute."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, check_sampled
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.winograd.template import WinogradTemplate
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import silent_rules
from tilewright.spaces.workloads.workload import Workload

LAST = "layout=NHWC"
IMAGES = {
    "padding": f"conv2d n=2 c=33 h=13 w=11 o=19 r=3 s=3 padding=1 {LAST}",
    "no padding": f"conv2d n=1 c=37 h=14 w=10 o=16 r=3 s=3 {LAST}",
    "much padding": f"conv2d n=1 c=32 h=5 w=7 o=9 r=3 s=3 padding=2 {LAST}",
    "few channels": f"conv2d n=2 c=8 h=9 w=10 o=7 r=3 s=3 padding=1 {LAST}",
    "one pixel": f"conv2d n=3 c=64 h=2 w=2 o=8 r=3 s=3 padding=1 {LAST}",
    "one output": f"conv2d n=1 c=64 h=9 w=8 o=1 r=3 s=3 padding=1 {LAST}",
    "dilation and stride": f"conv2d n=1 c=40 h=17 w=19 o=11 r=3 s=3 padding=2 dilation=2 "
    f"stride=2 {LAST}",
    "windows of two": f"conv2d n=1 c=48 h=9 w=10 o=13 r=2 s=2 {LAST}",
    "windows of five": f"conv2d n=1 c=24 h=9 w=8 o=17 r=5 s=5 padding=2 {LAST}",
    "fused": f"conv2d n=2 c=32 h=9 w=10 o=17 r=3 s=3 padding=1 {LAST} "
    'epilogue="max(x * scale[o] - z[n,o,p,q], gelu(x)) / size[]"',
    "rounded": f"conv2d n=1 c=32 h=7 w=7 o=24 r=3 s=3 padding=1 {LAST} out=bfloat16",
}
PROGRAMS = {
    "a line of filters": "y[i,j,l] = sum[r,s,k](x[i + r, j + s, k] * f[r,s,k,l])",
    "filters lie apart": "y[i,j,l] = sum[r,s,k](inside(x[i + r - 1, j + s, k], 0) * f[l,k,r,s])",
    "more outside": "y[i,j,l] = sum[r,s,k](inside(x[j + s, i + r - 1, k], 1) * f[l,r,s,k])",
}
EXTENTS = {"i": 13, "j": 11, "l": 19, "r": 3, "s": 3, "k": 34}


def case(name: str) -> Workload:
    """The workload of one of the texts."""
    if name in IMAGES:
        return workload(IMAGES[name])
    operand = "x: float32[13, 13, 34]; " if "inside" in PROGRAMS[name] else ""
    return workload(operand + PROGRAMS[name], **EXTENTS)


def machine(**changes: int) -> CpuTarget:
    caches = {"l1_bytes": 32 << 10, "l2_bytes": 64 << 10, "l3_bytes": 1 << 20}
    return dataclasses.replace(this_cpu(), **{"threads": 1, **caches, **changes})


def space_of(w: Workload, target: CpuTarget) -> Space:
    assert WinogradTemplate.refuses(w, target) is None
    return Space(w, target, [WinogradTemplate(w, target)])


@pytest.mark.parametrize("name", [*IMAGES, *PROGRAMS])
def test_kernels_agree_with_the_reference(name, tmp_path):
    check_sampled(space_of(case(name), machine()), 3, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("name", [*IMAGES, *PROGRAMS])
def test_more_kernels_agree_with_the_reference(name, seed, tmp_path):
    check_sampled(space_of(case(name), machine(threads=seed, cores=seed)), 12, seed, tmp_path)


def test_workers_share_all_of_the_output(tmp_path):
    check_sampled(space_of(case("fused"), machine(threads=6, cores=6)), 4, 2, tmp_path)


def test_other_vectors(tmp_path):
    changes = {"isa": "generic", "bf16_dot": False, "vector_registers": 32}
    target = dataclasses.replace(machine(), vector_bytes=16, **changes)
    check_sampled(space_of(case("padding"), target), 2, 0, tmp_path)


FIXED = {"output_tile": 3, "tile_rows": 3, "tile_vectors": 2, "row_workers": 1, "column_workers": 1}
FIXED |= {"block_tiles": 9, "block_columns": 16, "unroll": 1}
# what is broken: pattern, replacement of its first occurrence
BUGS = {
    "a line of border is not cleared": (r"i < 462; i\+\+\) line", "i < 396; i++) line"),
    "a border is one element short": (r"i = 396;", "i = 397;"),
    "squares overlap": (r"x \+ 1386 \*", "x + 924 *"),
    "squares go on in the next line": (r"99 \* \(\(first \+ n0\) % 4\)", "99 * (first + n0)"),
    "the tail of the channels is left out": (r"c0 < 9", "c0 < 8"),
    "an element of a square is passed over": (r"from \+ 4 \* c0 \+ 924", "from + 4 * c0 + 462"),
    "a sign of the image": (r"-2.0f\), d2,", "2.0f), d2,"),
    "a square for another": (r"\(to \+ 4 \* c0 \+ 313", "(to + 4 * c0 + 626"),
    "a tap is passed over": (r"\+ 33, 297", "+ 66, 297"),
    "a constant of the filter": (r"0.3333333333333333f", "0.3333f"),
    "one channel's filter for all": (r"g \+ \(4 \* c0\)", "g + (0 * c0)"),
    "all panels are the first": (r"u \+ 7000 \* j0", "u"),
    "an element's filter for another": (r"panel \+ 280 \* m0", "panel"),
    "an output is one off": (r"4.0f\), t\[0\]\[3\]", "2.0f), t[0][3]"),
    "outputs beyond the image": (r"\(11 - \(3 \* \(\(first", "(12 - (3 * ((first"),
    "a line of outputs too few": (r"\(10 - \(3 \*", "(9 - (3 *"),
    "a block of squares is left out": (r"t0_most < 2 \? t0_most : 2", "1"),
    "a stale block of squares": (r"x, v, square0 \+ \(9 \* t0\)", "x, v, square0"),
}


def test_every_planted_bug_is_found(tmp_path):
    target = dataclasses.replace(
        machine(vector_bytes=16), isa="generic", bf16_dot=False, flags=("-O0",)
    )
    w = workload(f"conv2d n=1 c=33 h=10 w=11 o=19 r=3 s=3 padding=1 {LAST}")
    template = WinogradTemplate(w, target)
    chosen = tuple((d.name, FIXED[d.name]) for d in template.decisions)
    right = template.lower(Schedule("winograd", chosen))
    check_bugs_are_found(right, BUGS, w, target, tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("matmul m=4 n=4 k=4", "product of matrices as they lie"),
        (f"conv2d n=1 c=64 h=9 w=9 o=8 r=3 s=3 stride=2 {LAST}", "along 0 axes; needs two"),
        (f"conv2d n=1 c=64 h=9 w=9 o=8 r=3 s=1 {LAST}", "along 1 axes; needs two"),
        (f"conv2d n=1 c=64 h=9 w=9 o=8 r=2 s=3 {LAST}", "windows are 2 x 3"),
        ("conv2d n=1 c=64 h=9 w=9 o=8 r=3 s=3", "along 0 axes; needs two"),
        (f"conv2d n=1 c=3 h=9 w=9 o=8 r=3 s=3 {LAST}", "there are 3 channels; needs 8"),
        (f"conv2d n=1 c=8 h=9 w=9 o=8 r=2 s=2 {LAST}", ""),
        (f"conv2d n=1 c=64 h=9 w=9 o=8 r=3 s=3 groups=2 {LAST}", "a batch of products"),
        (f"conv2d n=1 c=64 h=9 w=9 o=8 r=3 s=3 dtype=bfloat16 {LAST}", "image is bfloat16"),
    ],
)
def test_refusals_say_why(text, words):
    reason = WinogradTemplate.refuses(workload(text), this_cpu())
    assert (reason is None) == (not words)
    assert words in (reason or "")
    assert "\n" not in (reason or "")


def test_large_squares_need_many_channels():
    few, many = (
        space_of(workload(f"conv2d n=1 c={c} h=20 w=20 o=16 r=3 s=3 {LAST}"), machine())
        for c in (16, 64)
    )
    outputs = [
        {
            space.schedule(row).values["output_tile"]
            for row in space.sample(np.random.default_rng(0), 99)
        }
        for space in (few, many)
    ]
    assert outputs == [{2}, {2, 3, 4}]


def test_every_rule_refuses_something_and_says_why():
    texts = [
        f"conv2d n=4 c=16 h=30 w=30 o=8 r=3 s=3 padding=1 {LAST}",
        f"conv2d n=1 c=600 h=9 w=9 o=300 r=3 s=3 padding=1 {LAST}",
        f"conv2d n=1 c=600 h=60 w=60 o=300 r=3 s=3 padding=1 {LAST}",
    ]
    target = machine(threads=8, cores=8)
    assert not silent_rules([space_of(w, target) for w in map(workload, texts)], 400)


def test_quantities_count_what_squares_and_filters_become():
    """4 squares of 6x6 elements of 32 channels, and as many filters."""
    elements, squares, channels, lanes = 36, 4, 32, 8
    target = machine(vector_bytes=4 * lanes, l2_bytes=1 << 20)
    space = space_of(workload(f"conv2d n=1 c=32 h=10 w=10 o=32 r=3 s=3 {LAST}"), target)
    rows = space.sample(np.random.default_rng(0), 200)
    found, seen = space.quantities(rows), 0
    for i, values in enumerate(space.schedule(row).values for row in rows):
        if values["output_tile"] != 4:
            continue
        seen += 1
        wide = -(-channels // (int(values["tile_vectors"]) * lanes))
        high = -(-squares // int(values["tile_rows"]))
        assert found["tile_visits"][i] == elements * high * wide
        floats = squares * channels * wide + channels**2 + 2 * squares * channels
        assert found["near_bytes"][i] == 4 * elements * floats
        again = 2 * squares * channels + 2 * channels**2
        assert found["packing_bytes"][i] == 4 * elements * again
        assert found["middle_bytes"][i] >= 4 * elements * (squares * channels + channels**2)
        width = int(values["tile_vectors"]) * lanes
        block = high * int(values["tile_rows"]) * (channels + width) + channels * width
        assert found["middle_footprint"][i] == 4 * elements * block
        assert found["useful_flops"][i] == 2 * 8 * 8 * channels**2 * 9
        assert found["flops"][i] > 2 * elements * squares * channels**2
    assert seen > 10


@pytest.mark.parametrize("fits", [False, True])
def test_squares_come_again_from_beyond_l2_only_where_they_do_not_fit_there(fits):
    """4 squares of 6x6 elements of 32 channels, for every tile of columns."""
    once = 4 * 36 * 4 * 32
    target = machine(vector_bytes=32, l2_bytes=1 << 26 if fits else 1 << 15)
    space = space_of(workload(f"conv2d n=1 c=32 h=10 w=10 o=32 r=3 s=3 {LAST}"), target)
    rows = space.sample(np.random.default_rng(0), 100)
    found, wide = space.quantities(rows), set()
    for i, values in enumerate(space.schedule(row).values for row in rows):
        if values["output_tile"] == 4:
            tiles = -(-4 // int(values["tile_vectors"]))
            wide.add(tiles)
            again = once * (tiles - 1) * fits
            assert found["middle_bytes"][i] == found["near_bytes"][i] - 2 * once - again
    assert len(wide) > 1


def test_filters_that_l2_has_no_room_for_cost_more():
    w = workload(f"conv2d n=1 c=128 h=10 w=10 o=512 r=3 s=3 {LAST}")
    template = WinogradTemplate(w, machine(l2_bytes=1 << 20))
    columns = {d.name: np.array([d.values[0]] * 2) for d in template.decisions}
    columns |= {"block_columns": np.array([64, 512]), "block_tiles": np.array([64, 64])}
    within, beyond = template.quantities(columns)["packing_bytes"]
    assert beyond - within == 4 * 16 * 128 * 512


def test_every_worker_of_squares_transforms_all_filters():
    target = machine(threads=4, cores=4, vector_bytes=32, l2_bytes=1 << 20)
    space = space_of(workload(f"conv2d n=1 c=32 h=34 w=34 o=32 r=3 s=3 {LAST}"), target)
    rows = space.sample(np.random.default_rng(0), 300)
    moved = {
        space.schedule(row)["row_workers"]: packing
        for row, packing in zip(rows, space.quantities(rows)["packing_bytes"], strict=True)
        if space.schedule(row)["output_tile"] == 4 and space.schedule(row)["block_columns"] >= 32
    }
    assert moved[4] == 4 * 36 * (2 * 64 * 32 + 2 * 32 * 32 * 4)
