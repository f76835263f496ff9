"""Images that are read in place: what tiles at borders read, and how much of it is copied."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels, complaint
from tests.spaces.cpu.windows.test_template import machine, space_of
from tilewright.spaces.cpu.windows.copies.patches import in_place, patches
from tilewright.spaces.cpu.windows.nest import windows
from tilewright.spaces.cpu.windows.template import WindowsTemplate
from tilewright.spaces.derivation.products.view import placed_product_of
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule

IMAGES = {
    "both borders": "conv2d n=2 c=16 h=13 w=31 o=19 r=3 s=3 padding=1 layout=NHWC",
    "strides": "conv2d n=1 c=3 h=23 w=29 o=17 r=7 s=7 padding=3 stride=2 layout=NHWC",
    "dilation": "conv2d n=2 c=16 h=17 w=19 o=8 r=3 s=2 padding=2 dilation=3 layout=NHWC",
    "groups": "conv2d n=2 c=48 h=9 w=20 o=33 r=3 s=3 padding=1 groups=3 layout=NHWC",
    "lines alone": (
        '"x: float32[9, 21, 16]; y[i,j,o] = sum[r,c](inside(x[i+r-3,j,c], 0) * f[o,r,c])" '
        "i=9 j=21 o=7 r=7 c=16"
    ),
    "a sequence": "conv1d n=2 c=6 w=61 o=20 r=5 stride=2 padding=4 layout=NWC",
    "bfloat16": "conv2d n=1 c=18 h=9 w=20 o=16 r=3 s=3 padding=1 dtype=bfloat16 layout=NHWC",
    "fused": (
        "conv2d n=2 c=16 h=9 w=24 o=17 r=3 s=3 padding=1 layout=NHWC "
        'epilogue="relu(x + bias[o]) + z[n,o,p,q]"'
    ),
    "another value outside": (
        '"x: float32[9, 21, 16]; y[i,j,o] = sum[r,s,c](inside(x[i+r-1,j+s-1,c], 2) * f[o,r,s,c])" '
        "i=9 j=21 o=7 r=3 s=3 c=16"
    ),
}


def patched(space, count: int, seed: int):
    """Random schedules that read the image in place."""
    rows = space.sample(np.random.default_rng(seed), 512)
    found = [s for s in map(space.schedule, np.unique(rows, axis=0)) if s["padding"] == "patched"]
    return list(np.random.default_rng(seed).permutation(np.array(found, object))[:count])


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("threads", [1, 4])
def test_images_in_place_agree_with_the_reference(name, threads, tmp_path):
    w, target = workload(IMAGES[name]), machine(threads=threads, cores=threads)
    space = space_of(w, target)
    kernels = [space.lower(schedule) for schedule in patched(space, 5, threads)]
    library = compile_kernels(kernels, target, tmp_path)
    assert kernels
    assert not any(filter(None, (complaint(kernel, library, w, 1) for kernel in kernels)))


def test_an_image_in_place_is_not_copied_before():
    space = space_of(workload(IMAGES["both borders"]), machine())
    for schedule in patched(space, 5, 0):
        assert "_copy0(" not in space.lower(schedule).source.body


@pytest.mark.parametrize(
    "text",
    [
        "conv2d n=1 c=16 h=9 w=20 o=17 r=3 s=3 layout=NHWC",  # no borders
        "conv2d n=1 c=16 h=9 w=20 o=17 r=3 s=3 padding=1",  # three pixels at a time
        "conv2d n=1 c=4 h=9 w=20 o=17 r=3 s=3 padding=1 layout=NHWC",  # twelve elements
    ],
)
def test_images_without_borders_or_with_short_runs_have_no_patches(text):
    template = WindowsTemplate(workload(text), machine())
    assert "padding" not in {decision.name for decision in template.decisions}


def test_tiles_that_cross_a_border_are_counted():
    """9 lines of 20 outputs, of which the first and the last read a border; in the others the
    first and the last tile do, of 5 rows each."""
    product = placed_product_of(workload(IMAGES["fused"].replace("w=24", "w=20")))
    assert not isinstance(product, str)
    view = in_place(windows(product))
    assert view is not None
    found = patches(view, True, 5)
    assert found.crossing(view) == 2 * (2 * 4 + 7 * 2)  # of two images
    assert found.copied_bytes == 4 * 3 * (5 + 2) * 16


def test_lines_of_a_patch_never_overlap():
    """A line of 7 pixels, of which 7 rows would read 9."""
    space = space_of(
        workload("conv2d n=1 c=32 h=7 w=7 o=32 r=3 s=3 padding=1 layout=NHWC"), machine()
    )
    schedules = patched(space, 100, 0)
    assert schedules
    assert all(schedule["tile_rows"] <= 5 for schedule in schedules)


BUGS = {
    "a border in front is read": (r"at % 384\) >= 32", "at % 384) >= 0"),
    "a border behind is read": (r"\+ span <= 352", "+ span <= 384"),
    "a line above is read": (r"at / 384\) % 13\) >= 2", "at / 384) % 13) >= 0"),
    "a line below is read": (r"end / 384\) % 13\) < 11", "end / 384) % 13) < 13"),
    "the last turn is the first": (r"at \+ 384 \* \(turns - 1\)", "at"),
    "a patch is held for ever": (r"\*held == at", "*held >= 0"),
    "a border is not cleared": (r"i < start; i\+\+\) to\[i\] = 0.0f", "i < start; i++) to[i] = 1"),
    "the end of a border is not cleared": (r"i < span; i\+\+\) to", "i < span - 1; i++) to"),
    "a patch begins one pixel off": (r"place \+ start - ", "place + start + 16 - "),
    "lines of a patch are too near": (r"patch \+ \(?320 \* t0", "patch + (48 * t0"),
    "an image in place is one line off": (r"return from \+ \(", "return from + (320 + "),
    "a patch of another block of the depth": (r"\+ 384 \* t\b", "+ 0 * t"),
}


def test_every_planted_bug_is_found(tmp_path):
    w = workload("conv2d n=2 c=16 h=9 w=20 o=10 r=5 s=3 padding=2 layout=NHWC")
    target = dataclasses.replace(
        machine(vector_bytes=16), isa="generic", bf16_dot=False, flags=("-O0",)
    )
    values = {"padding": "patched", "pack_right": True, "tile_rows": 5, "tile_vectors": 2}
    values |= {"row_workers": 1, "column_workers": 1, "batch_workers": 1, "unroll": 1}
    values |= {"order": "rows_outer", "block_depth": 128, "block_columns": 64}
    template = WindowsTemplate(w, target)
    chosen = tuple((d.name, values[d.name]) for d in template.decisions)
    right = template.lower(Schedule("windows", chosen))
    check_bugs_are_found(right, BUGS, w, target, tmp_path)
