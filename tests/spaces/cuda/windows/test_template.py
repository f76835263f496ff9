"""The CUDA template of windows in shared memory: its image, its rules and its quantities."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.cuda.blocks.implicit import tiled_product_of
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.cuda.windows.image import Image, Runs
from tilewright.spaces.cuda.windows.template import CudaWindows
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

TARGET = cuda_target("sm_90a")
FIRST = {"c": 3, "h": 224, "w": 224, "o": 64, "r": 7, "s": 7, "stride": 2, "padding": 3}
LARGE = {"h": 40, "w": 10000}
HALVES = {"dtype": "float16", "layout": "NHWC"}
PROGRAMS = {
    "a first layer": workload("conv2d", n=8, **FIRST, **HALVES),
    "four channels": workload("conv2d", n=1, **FIRST | {"c": 4}, **HALVES),
    "few rows": workload("conv2d", n=1, c=2, h=6, w=6, o=33, r=3, s=3, padding=1, **HALVES),
    "one channel": workload(
        "conv2d", n=2, c=1, h=40, w=40, o=72, r=3, s=3, padding=1, dtype="bfloat16", layout="NHWC"
    ),
    "no borders": workload("conv2d", n=4, c=3, h=31, w=29, o=12, r=3, s=3, **HALVES),
    "overlapping rows": workload(
        "x: float16[4,999]; y[a,i,j] = sum[k](x[a,i+k] * w[j,k])",
        a=4, i=990, j=8, k=10, dtype="float16",
    ),
}  # fmt: skip


def space_of(w: Workload) -> Space:
    assert CudaWindows.refuses(w, TARGET) is None
    return Space(w, TARGET, [CudaWindows(w, TARGET)])


@pytest.mark.parametrize("name", PROGRAMS)
def test_quantities_are_complete_and_possible(name):
    quantities = checked_quantities(space_of(PROGRAMS[name]), seed=0, schedules=200)
    assert (quantities["flops"] >= quantities["useful_flops"]).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_window_holds_what_every_row_of_a_tile_reads(name):
    image = Image(tiled_product_of(PROGRAMS[name]))
    view, rows = image.product.view, image.product.rows
    numbers = np.arange(rows)
    place = np.full(rows, image.offset.constant)
    for part in reversed(view.rows):
        place += numbers % part.extent * image.offset.coefficient(part.name)
        numbers = numbers // part.extent
    assert (np.diff(place) > 0).all()
    for tile in (16, 48, 256):
        first = place[::tile] // image.unit * image.unit
        last = np.minimum(np.arange(0, rows, tile) + tile, rows) - 1
        held = image.window(tile) * image.vector
        assert (place[last] + image.terms.max() < first + held).all()
        assert (place[last] + image.terms.max() + 1 >= first + held - image.vector).any()


def test_lines_begin_at_whole_vectors_and_pairs_are_seen():
    first, four = (Image(tiled_product_of(PROGRAMS[n])) for n in ("a first layer", "four channels"))
    assert (first.vector, first.length) == (8, 16 + 224 * 3 + 8)
    assert (four.vector, four.length) == (8, 16 + 224 * 4 + 8)
    assert first.runs == Runs(7, 21, 1, 22, True)
    assert four.runs == Runs(7, 28, 0, 28, True)
    single = workload("conv2d", n=1, **FIRST | {"stride": 1}, **HALVES)
    assert Image(tiled_product_of(single)).runs == Runs(1, 147, 0, 147, False)


def test_every_rule_refuses_something_and_says_why():
    small = cuda_target("sm_86")
    w = PROGRAMS["a first layer"]
    spaces = [Space(w, small, [CudaWindows(w, small)]), *map(space_of, PROGRAMS.values())]
    assert silent_rules(spaces, 400) == set()


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4, dtype="float16"), "needs rows that overlap"),
        (workload("conv2d", n=1, **FIRST, layout="NHWC"), "multiplies float32; allowed"),
        (workload("conv2d", n=1, **FIRST | {"c": 8}, **HALVES), "gathered 16 bytes at a time"),
        (workload("conv2d", n=1, **FIRST | {"r": 1, "s": 1}, **HALVES), "do not overlap"),
        (workload("conv2d", n=1, **FIRST, dtype="float16"), "rows of filter do not overlap"),
        (workload("conv2d", n=1, **FIRST | {"c": 6, "o": 6}, groups=2, **HALVES), "2 products"),
        (workload("conv2d", n=1, **FIRST | LARGE, **HALVES), "the smallest window takes"),
    ],
)  # fmt: skip
def test_refusals_say_why(w, words):
    assert words in CudaWindows.refuses(w, TARGET)
