"""Programs and inputs of which kernels once were wrong, or read outside of their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np
import pytest

from tests.measure.cuda.edges import H200, faults
from tests.spaces.edge_cases import Judged
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule

COUNT = 3
"""Kernels of each."""
TWO_AXES = "y[r] = logsumexp[c,g](x[r,c] + v[g])"
SCORE = "p[h,i,j] = sum[d](q[h,i,d] * k[h,j,d]) * 0.3"
WARM = (
    "q: bfloat16\nk: bfloat16\nv: bfloat16\n{}\nm[h,i] = max[j](p[h,i,j])\n"
    "y[h,i,e] = sum[j](exp((p[h,i,j] - m[h,i]) * 2.5) * v[h,j,e])"
)
CHAINED = {"h": 1, "d": 8, "e": 8}
LATE = {"template": "chained", "rescale": "late"}
CASES = {
    "fewer elements than a vector has": (
        (TWO_AXES, {"r": 5, "c": 16, "g": 3}, {}, 0),
        {"row_storage": "shared"},
    ),
    "elements that are not along the vector": (
        (TWO_AXES, {"r": 5, "c": 16, "g": 8}, {}, 0),
        {"row_storage": "shared"},
    ),
    "a temperature of large scores": (
        (
            "m[r] = max[c](x[r,c]); y[r] = sum[c](exp((x[r,c] - m[r]) * 3.5))",
            {"r": 3, "c": 5000},
            {"x": "large"},
            0,
        ),
        {"passes": "online"},
    ),
    "a temperature for each row": (
        (
            "m[r] = max[c](x[r,c]); y[r] = sum[c](exp((x[r,c] - m[r]) * t[r]))",
            {"r": 6, "c": 300},
            {"x": "large"},
            0,
        ),
        {"passes": "online"},
    ),
    "an outlier before all others": (
        (
            "y[r,c] = (x[r,c] - mean[c](x[r,c])) * rsqrt(var[c](x[r,c]) + 0.00001)",
            {"r": 6, "c": 1000},
            {"x": "an outlier first"},
            0,
        ),
        {"template": "rows"},
    ),
    "a product that overflows on the way": (
        (
            "x: float32[b,34]\ny[b,p] = prod[k](inside(x[b,p + k - 1], 1))",
            {"b": 2, "p": 31, "k": 4},
            {"x": "one largest"},
            59,
        ),
        {"template": "kept"},
    ),
    "large values that a softmax weighs": (
        (
            "y[r] = sum[c](softmax[c](select(c % 3 == 1, x[r,c], -1e30)) * w[r,c])",
            {"r": 5, "c": 200},
            {"w": "large"},
            98,
        ),
        {"passes": "online"},
    ),
    "a sum that overflows on the way to an infinite one": (
        (
            "y[i,j] = silu(sum[k](a[i,k] * b[k,j])) * sum[k](a[i,k] * c[k,j])",
            {"i": 31, "j": 64, "k": 15},
            {"b": "least until the end", "c": "one infinity"},
            62,
        ),
        {"template": "staged"},
    ),
    "attention with a temperature": (
        (WARM.format(SCORE), {**CHAINED, "i": 20, "j": 40}, {}, 0),
        LATE,
    ),
    "attention with a temperature of large scores": (
        (
            WARM.format("p[h,i,j] = sum[d](q[h,i,d] * k[h,j,d]) + b[j]"),
            {**CHAINED, "i": 6, "j": 300},
            {"b": "large"},
            0,
        ),
        {"template": "chained"},
    ),
    "attention with a temperature in parts": (
        (
            WARM.format("p[h,i,j] = sum[d](q[h,i,d] * k[h,j,d]) + a[i,j]"),
            {**CHAINED, "i": 5, "j": 400},
            {"a": "least until the end"},
            0,
        ),
        {"template": "chained_hopper", "splits": 2},
    ),
    "rows that see nothing": (
        ("where j < i - 4\n" + WARM.format(SCORE), {**CHAINED, "i": 7, "j": 15}, {}, 0),
        LATE,
    ),
    "windows behind the last key": (
        (
            "where j <= i\nwhere i - j < 7\n" + WARM.format(SCORE),
            {**CHAINED, "i": 15, "j": 8},
            {},
            0,
        ),
        {"template": "chained", "rescale": "moved"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_went_wrong_once_is_right(emulator, name):
    case, wanted = CASES[name]
    judged = Judged.of(case, H200)
    assert judged is not None
    made = kernels(judged, wanted)
    assert made
    assert faults(emulator, judged, made, INTERLEAVINGS[:1]) == []


def kernels(judged: Judged, wanted: Mapping[str, object]) -> dict[Schedule, Kernel]:
    """Kernels of schedules whose decisions are ``wanted``."""
    rows = judged.space.sample(np.random.default_rng(0), 300)
    every = map(judged.space.schedule, rows)
    own = (s for s in every if wanted.items() <= {**s.values, "template": s.template}.items())
    return {schedule: judged.space.lower(schedule) for schedule in islice(own, COUNT)}
