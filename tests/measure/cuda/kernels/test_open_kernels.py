"""Open kernels on the emulator: right at every extent that calls give, with no block too many."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
import pytest

from tests.kernels import planted
from tilewright.measure.calls import call_from_json, call_to_json
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.cuda.emulator.emulator import INTERLEAVINGS
from tilewright.measure.cuda.emulator.verify import judged, problems
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Call, Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

TARGET = replace(cuda_target("sm_90a"), multiprocessors=4)
"""A GPU so small that persistent blocks go over several tiles."""
PRODUCTS = {
    "thin, few rows": ("thin", {"m": 13, "n": 72, "k": 136, "dtype": "bfloat16", "b": "col"}),
    "thin, one term": ("thin", {"m": 5, "n": 40, "k": 1}),
    "thin, few columns": (
        "thin",
        {"m": 83, "n": 6, "k": 72, "dtype": "float16", "epilogue": "x * s[m] + t[m,n]"},
    ),
    "simt": ("simt", {"m": 83, "n": 37, "k": 41, "epilogue": "max(x + bias[m], 0) * r[m,n]"}),
    "simt, double": ("simt", {"m": 37, "n": 70, "k": 16, "dtype": "float64", "b": "col"}),
    "mma": (
        "mma",
        {"m": 150, "n": 72, "k": 136, "dtype": "bfloat16", "b": "col", "epilogue": "x + b[m]"},
    ),
    "mma, bytes": ("mma", {"m": 70, "n": 144, "k": 96, "dtype": "int8", "out": "int32"}),
    "hopper": ("hopper", {"m": 300, "n": 144, "k": 72, "dtype": "bfloat16", "b": "col"}),
    "hopper, beside": (
        "hopper",
        {"m": 150, "n": 144, "k": 40, "dtype": "float16", "epilogue": "max(x * s[m] + t[m,n], 0)"},
    ),
    "hopper, bias": (
        "hopper",
        {"m": 150, "n": 144, "k": 40, "dtype": "bfloat16", "epilogue": "gelu(x + bias[n])"},
    ),
}
APART = ("multiply", "small_operand", "load_order", "splits", "merge", "raster", "raster_group")
APART += ("swap_ab", "schedule", "store_buffers", "fetch")
"""Decisions by which a few schedules should differ."""
PROGRAMS = {
    "rows, softmax": ("rows", "softmax", {"r": 61, "c": 40}, "r"),
    "rows of heads": (
        "rows",
        "s[m,h] = sum[c](x[m,h,c] * x[m,h,c]); y[m,h,c] = x[m,h,c] / (s[m,h] + 1) * g[c] + b[m]",
        {"m": 61, "h": 3, "c": 24},
        "m",
    ),
    "rows of a table": (
        "rows",
        "t: int32[m](index < 9)\ny[m] = sum[c](x[t[m],c] * z[m,c])",
        {"m": 61, "c": 19},
        "m",
    ),
    "rows, map": ("rows", "y[m,h,c] = x[m,h,c] * g[h] + f[m]", {"m": 40, "h": 3, "c": 96}, "m"),
    "map, one loop": ("map", "y[m,c] = x[m,c] * 2 + 1", {"m": 61, "c": 37}, "m"),
    "map, rows": ("map", "y[m,c] = max(x[m,c] * g[c] + b[m], 0)", {"m": 61, "c": 37}, "m"),
    "map, transposes": ("map", "y[m,c,r] = x[m,r,c] * 2", {"m": 21, "r": 33, "c": 48}, "m"),
    "map, a table": ("map", "t: int32[m](index < 9)\ny[m,c] = x[t[m],c]", {"m": 61, "c": 19}, "m"),
}
IMAGES = {"c": 16, "h": 7, "w": 6, "r": 3, "s": 3, "padding": 1, "layout": "NHWC"}
CONVOLUTIONS = {
    "mma, images": ("mma", {**IMAGES, "n": 5, "o": 24, "dtype": "bfloat16"}),
    "simt, images": ("simt", {**IMAGES, "n": 5, "o": 10, "stride": 2}),
    "hopper, images": ("hopper", {**IMAGES, "n": 5, "c": 64, "o": 64, "dtype": "bfloat16"}),
    "hopper, strides": (
        "hopper",
        {**IMAGES, "n": 5, "c": 32, "o": 64, "dtype": "float16", "stride": 2},
    ),
    "mma, groups": ("mma", {**IMAGES, "n": 5, "o": 32, "groups": 2, "dtype": "float16"}),
}
PROGRAMS |= {n: (t, "conv2d", given, "n") for n, (t, given) in CONVOLUTIONS.items()}
PAIR = {"m": 150, "n": 72, "k": 72, "dtype": "bfloat16"}
PROGRAMS["hopper, pairs"] = ("hopper_pairs", "gated_matmul", PAIR, "m")
ATTENTION = {
    "batch": ("b,h,i", "b,h,j", "n: int32[b](index < 40); where j < n[b]; ", "b"),
    "queries": ("i,h", "j,h", "where j <= i + 20; ", "i"),
    "queries of groups": ("i,h,g", "j,h", "", "i"),
    "keys": ("i,h", "j,h", "", "j"),
}
"""Axes of queries and of keys, what comes before, and the open axis."""
EXTENTS = {"b": 5, "h": 2, "g": 4, "i": 68, "j": 40, "d": 16, "e": 16}


def attention(queries: str, keys: str, before: str, axis: str) -> tuple[str, dict, str]:
    q, y, k, v = (f"[{axes},{last}]" for axes in (queries, keys) for last in "de")
    kinds = (f"{name}: bfloat16{axes}; " for name, axes in (("q", q), ("k", k), ("v", v)))
    text = f"y{y} = sum[j](softmax[j](sum[d](q{q} * k{k}) * 0.3) * v{v})"
    own = {name: extent for name, extent in EXTENTS.items() if name in f"{queries}{keys}de"}
    return f"{before}{''.join(kinds)}{text}", own, axis


PROGRAMS |= {
    f"{template}, {name}": (template, *attention(*given))
    for template in ("chained", "chained_hopper")
    for name, given in ATTENTION.items()
}
KERNELS = {n: (t, "matmul", given, "m") for n, (t, given) in PRODUCTS.items()} | PROGRAMS
"""Templates with a workload and its open axis."""
OF_PROGRAMS = ("lanes", "cluster", "tile_scheduler", "stages", "row_storage", "order", "vector")
OF_PROGRAMS += ("query_storage", "warp_splits", "query_buffers", "head_group")
ON_HOPPER = ("hopper", "hopper_pairs", "chained_hopper")
DECISIONS = {*APART, *OF_PROGRAMS}


@cache
def space_of(name: str, size: int | None = None, target: CudaTarget = TARGET) -> Space:
    template, text, parameters, axis = KERNELS[name]
    made = workload(text, **parameters | ({} if size is None else {axis: size}))
    (kind,) = (t for t in templates_for(target) if t.name == template)
    return Space(made, target, [kind(made, target)])


def open_kernel(name: str, space: Space, schedule: Schedule) -> Kernel:
    return space.lower_open(schedule, KERNELS[name][-1])


@cache
def schedules(name: str, space: Space) -> list[Schedule]:
    """Random schedules that have open kernels."""
    every = map(space.schedule, space.sample(np.random.default_rng(5), 64))
    return [s for s in every if space.why_not_open(s, KERNELS[name][-1]) is None]


def some_schedules(name: str, space: Space, count: int) -> list[Schedule]:
    """Schedules that differ as much as a few can: each has the most values not seen before."""
    every = list(schedules(name, space))
    found: list[Schedule] = []
    seen: set[tuple[str, object]] = set()
    while every and len(found) < count:
        new = [
            sum((n, v) not in seen for n, v in s.values.items() if n in DECISIONS) for s in every
        ]
        found.append(every.pop(int(np.argmax(new))))
        seen |= set(found[-1].values.items())
    return found


def sizes_of(call: Call, schedule: Schedule) -> list[int]:
    """Extents at the ends of an axis and of a block's rows, or of a tile of keys; one key is not
    among them, whose weight is 1 whatever its score."""
    grids = [launch.open_grid for launch in call.launches if launch.open_grid]
    keys = [] if grids else [int(schedule.values.get("keys", 0))]
    steps = [*keys, *(grid.step // grid.rows for grid in grids)]
    edges = {step + more for step in steps for more in (-1, 0, 1)}
    near = {1, 2, 3, call.extent - 1, call.extent, *edges}
    return sorted(size for size in near if (2 if any(keys) else 1) <= size <= call.extent)


def fault(emulator: Emulator, work: Workload, kernel: Kernel) -> str:
    return judged(emulator, kernel, next(problems(work)), INTERLEAVINGS[:1]).error_text


@pytest.mark.parametrize("turns", [2, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KERNELS)
def test_they_are_right_at_every_extent(emulator, name, turns):
    """Schedules take turns with every second extent; in slow tests they have all."""
    space = space_of(name)
    chosen = some_schedules(name, space, 2 if name.startswith("chained") else 4)
    kernels = [open_kernel(name, space, schedule) for schedule in chosen]
    emulator.build(kernels)
    for turn, (schedule, kernel) in enumerate(zip(chosen, kernels, strict=True)):
        for size in sizes_of(kernel.call, schedule)[turn % turns :: turns]:
            work = space_of(name, size).workload
            assert not fault(emulator, work, kernel.at(size)), (kernel.call.entry, size)


@pytest.mark.parametrize("name", KERNELS)
def test_they_have_the_bits_of_fixed_kernels(emulator, name):
    space = space_of(name)
    inputs = space.workload.make_inputs(3)
    for schedule in some_schedules(name, space, 2):
        made = space.lower(schedule), open_kernel(name, space, schedule)
        fixed, opened = (emulator.run(kernel, inputs).output for kernel in made)
        assert (fixed.view(np.uint8) == opened.view(np.uint8)).all(), schedule


@pytest.mark.parametrize("name", KERNELS)
def test_grids_shrink_with_the_extent(name):
    space = space_of(name)
    for schedule in schedules(name, space):
        call, fixed = open_kernel(name, space, schedule).call, space.lower(schedule).call
        assert call.at(call.extent) == call
        for launch, before in zip(call.launches, fixed.launches, strict=True):
            assert prod(launch.grid) <= prod(before.grid)
        for size in sizes_of(call, schedule):
            for launch, whole in zip(call.at(size).launches, call.launches, strict=True):
                grid = whole.open_grid
                tiles = -(-size * grid.rows // grid.step) if grid else 1
                most = -(-call.extent * grid.rows // grid.step) if grid else 1
                if grid and grid.most:  # blocks that go over tiles
                    assert launch.grid == (min(tiles * grid.blocks, grid.most), 1, 1)
                else:
                    assert prod(launch.grid) * most == prod(whole.grid) * tiles


@pytest.mark.parametrize("name", ["hopper, bias", "hopper, beside"])
def test_rows_are_tested_where_something_is_loaded_for_them(name):
    space = space_of(name)
    staged = [s for s in schedules(name, space) if s.values["store_buffers"]]
    assert staged
    for schedule in staged:
        source = open_kernel(name, space, schedule).source.text
        assert ("< open_extent" in source) == (name == "hopper, beside"), schedule


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_they_compile(architecture, name):
    if KERNELS[name][0] in ON_HOPPER and architecture != "sm_90a":
        return
    target = cuda_target(architecture)
    space = space_of(name, target=target)
    job = Job("open", space.workload, target)
    candidates = [
        Candidate(job, schedule, open_kernel(name, space, schedule))
        for schedule in some_schedules(name, space, 2)
    ]
    builder = NvrtcBuilder(target)
    try:
        for built in builder.build(candidates):
            assert built.binary is not None or "spill" in built.error_text, built.error_text
    finally:
        builder.close()


@pytest.mark.parametrize("name", KERNELS)
def test_calls_of_an_extent_travel_as_json(name):
    space = space_of(name)
    call = open_kernel(name, space, some_schedules(name, space, 1)[0]).call.at(5)
    sent = json.dumps(call_to_json(call))
    assert call_from_json(json.loads(sent), space_of(name, 5).workload) == call


@pytest.mark.parametrize("extent", [0, 14])
def test_extents_out_of_range_are_refused(extent):
    space = space_of("thin, few rows")
    schedule = some_schedules("thin, few rows", space, 1)[0]
    with pytest.raises(InputError, match="allowed: 1 to 13"):
        space.lower_open(schedule, "m").call.at(extent)
    with pytest.raises(InputError, match="no open axis"):
        space.lower(schedule).call.at(extent)


END = r"< open_extent\b(?! -)"


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("thin, few rows", r": open_extent - 1\)", ": open_extent)"),
        ("thin, few rows", END, "<= open_extent"),
        ("thin, few columns", END, "<= open_extent"),
        ("simt", END, "<= open_extent"),
        ("mma", END, "<= open_extent"),
        ("mma, images", END, "<= open_extent"),
        ("mma", "walk_row = band_row", "walk_row = 1 + band_row"),
        ("hopper, beside", END, "<= open_extent"),
        ("hopper, beside", r"int row_tiles = \(open_extent \+ \d+", "int row_tiles = (open_extent"),
        ("rows, softmax", r"tiles = \(open_extent \+ \d+\)", "tiles = open_extent"),
        (
            "hopper, images",
            r"int row_tiles = \(\d+ \* open_extent",
            "int row_tiles = (0 * open_extent",
        ),
        ("hopper, pairs", r"int row_tiles = \(open_extent \+ \d+", "int row_tiles = (open_extent"),
        ("chained, queries", r"open_extent \+ \d+", "open_extent"),
        ("chained, keys", "end = open_extent;", "end = open_extent + 1;"),
        ("chained_hopper, batch", r"open_extent \* 2\) \*", "open_extent * 2 + 2) *"),
        ("chained_hopper, queries", r"open_extent \+ \d+", "open_extent"),
        ("chained_hopper, keys", "end = open_extent;", "end = open_extent + 1;"),
        ("rows of heads", r"< open_extent \* 3\b", "<= open_extent * 3"),
        ("map, rows", END, "<= open_extent"),
        ("map, one loop", r"open_extent \* 37 - a0", "open_extent * 37 + 1 - a0"),
    ],
)
def test_wrong_ends_are_found(emulator, name, right, wrong):
    """Kernels that go on by one row read or write beyond their arrays."""
    space = space_of(name)
    kernels = (open_kernel(name, space, schedule) for schedule in schedules(name, space))
    kernel = next(kernel for kernel in kernels if re.search(right, kernel.source.body))
    broken = planted(kernel, right, wrong, "wrong_end", 0)
    size = kernel.call.extent // 2
    assert fault(emulator, space_of(name, size).workload, broken.at(size))


@pytest.mark.parametrize(
    ("template", "text", "parameters", "axis", "reason"),
    [
        ("rows", "softmax", {"r": 64, "c": 64}, "c", "c is not the outermost axis of rows"),
        ("map", "y[a,b] = x[b,a] + 1", {"a": 64, "b": 64}, "a", "the outermost axis of x"),
        ("hopper", "matmul", {"m": 512, "n": 512, "k": 64, "dtype": "bfloat16"}, "m", "Hilbert"),
        (
            "hopper",
            "conv2d",
            {"n": 8, "c": 64, "h": 8, "w": 8, "o": 64, "r": 1, "s": 1, "dtype": "bfloat16"},
            "n",
            "n is not the rows of one product",
        ),
        (
            "chained_hopper",
            "attention",
            {"b": 3, "h": 4, "i": 128, "j": 128, "d": 64, "dtype": "bfloat16"},
            "b",
            "12 heads take turns, and a point of b has 4",
        ),
        (
            "chained",
            "attention",
            {"b": 3, "h": 4, "i": 128, "j": 128, "d": 64, "dtype": "bfloat16"},
            "i",
            "i is not the outermost axis of",
        ),
    ],
)
def test_what_cannot_be_open_says_why(template, text, parameters, axis, reason):
    target = cuda_target("sm_90a")
    (kind,) = (t for t in templates_for(target) if t.name == template)
    work = workload(text, **parameters)
    space = Space(work, target, [kind(work, target)])
    every = map(space.schedule, space.sample(np.random.default_rng(0), 200))
    schedule = next(s for s in every if reason in (space.why_not_open(s, axis) or ""))
    with pytest.raises(InputError, match=f"{axis} cannot be open: .*{reason}"):
        space.lower_open(schedule, axis)
