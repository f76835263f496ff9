"""The CUDA template of packed factors: what it serves, its parts, and what it may take."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.spaces.cuda.packed.template import CudaPacked
from tilewright.spaces.cuda.staged.template import CudaStaged
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract

H200, A100 = detect_target("cuda:sm_90a"), detect_target("cuda:sm_80")
WINDOWS = "conv2d n=32 c=64 h=56 w=56 o=64 r=3 s=3 padding=1 dtype=float16"
SERVED = {
    "windows": (WINDOWS, ["map", "map", "hopper"], ["map", "map", "mma"]),
    "a residual": (
        "conv2d n=8 c=64 h=14 w=14 o=72 r=1 s=1 dtype=bfloat16 "
        'epilogue="relu(x + bias[o] + residual[n, o, p, q])"',
        ["map", "hopper"],
        ["map", "mma"],
    ),
    "few channels": (
        "conv2d n=2 c=3 h=15 w=17 o=24 r=3 s=3 stride=2 dtype=float16",
        ["map", "map", "mma"],
        ["map", "map", "mma"],
    ),
    "pixels of a line": (
        '"x: bfloat16[4, 64, 40]; '
        'y[n, o, p] = sum[c, r](inside(x[n, c, p + r - 1], 0) * f[o, r, c])" '
        "n=4 o=32 p=40 c=64 r=3 dtype=bfloat16",
        ["map", "hopper"],
        ["map", "mma"],
    ),
}
REFUSED = {
    f"{WINDOWS} layout=NHWC": "TMA brings its factors as they lie",
    f"{WINDOWS} groups=2": "no part of the depth",
    "matmul m=8 n=8 k=8": "one kernel computes a product of matrices",
    "softmax r=8 c=8": "reductions: ",
}


def templates_of(text, target):
    template = CudaPacked(workload(text), target)
    return [each.name for each in template.templates]


class TestPacked(TemplateContract):
    template = CudaPacked

    def served(self):
        work = [workload(text) for text, *_ in SERVED.values()]
        return [(w, target) for w in work for target in (H200, A100)]

    def refused(self):
        targets = [(workload(text), H200) for text in REFUSED]
        return [*targets, (workload(WINDOWS), detect_target("cpu"))]


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_why_it_is_refused(text, reason):
    assert reason in str(CudaPacked.why_not(workload(text), H200))


@pytest.mark.parametrize("name", SERVED)
def test_each_factor_that_needs_it_is_packed_by_a_map(name):
    text, *parts = SERVED[name]
    assert [templates_of(text, target) for target in (H200, A100)] == parts


def test_what_is_packed_is_no_part_of_a_program_of_several_kernels():
    """Their launches have no arrays of their own in between within those of others."""
    text = (
        '"z[n, o, p] = sum[c, r](x[n, c, p + r] * f[o, c, r]); y[n, p] = max[o](z[n, o, p])" '
        "n=2 o=32 p=40 c=64 r=3 dtype=bfloat16"
    )
    parts = CudaStaged.cut(workload(text), H200)
    assert not isinstance(parts, str)
    assert CudaPacked not in {part.template for part in parts}


def test_the_estimate_tells_packed_windows_from_gathered_ones():
    """On an H200 the best that gathered the pixels of this one by one took 88 us, its rival 46."""
    space = space_for(workload(WINDOWS), H200)
    population = space.sample(np.random.default_rng(0), 2000)
    latency = AnalyticModel().latency(space, population)
    names = np.array([space.schedule(row).template for row in population])
    best = {name: latency[names == name].min() for name in ("packed", "mma")}
    assert best["packed"] < 0.8 * best["mma"]
