"""Kernels of random programs on inputs at the edges: NaN and infinite where the program is, within
what is allowed elsewhere, and never outside of their arrays."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings

from tests.kernels import planted
from tests.spaces.cpu.edges import BETWEEN_WALLS, QUICK, TARGET, TRAPPED, TRAPS, complaints
from tests.spaces.cpu.native import compile_apart, outcome
from tests.spaces.edge_inputs import edge_inputs
from tests.spaces.edge_programs import cases
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

KNOWN = {
    "a temperature, and nothing but -inf at first": (
        "m[r] = max[c](x[r,c]); q[r] = sum[c](exp((x[r,c] - m[r]) * 3.5)); "
        "y[r,c] = exp((x[r,c] - m[r]) * 3.5) / q[r]",
        {"r": 3, "c": 1000},
        {"x": "-inf until the end"},
    ),
    "a temperature far from zero": (
        "m[r] = max[c](x[r,c]); q[r] = sum[c](exp((x[r,c] - m[r]) * 3.5)); "
        "y[r,c] = exp((x[r,c] - m[r]) * 3.5) / q[r]",
        {"r": 6, "c": 300},
        {"x": "far from zero"},
    ),
    "a temperature of the largest": (
        "m[r] = max[c](x[r,c]); y[r] = sum[c](exp((x[r,c] - m[r]) * 3.5))",
        {"r": 6, "c": 300},
        {"x": "large"},
    ),
    "attention with a temperature of the largest": (
        "p[i,j] = sum[d](q[i,d] * k[j,d]) + b[j]\nm[i] = max[j](p[i,j])\n"
        "y[i,e] = sum[j](exp((p[i,j] - m[i]) * 3.5) * v[j,e])",
        {"i": 6, "j": 300, "d": 8, "e": 20},
        {"b": "large"},
    ),
    "a base of two, distributed": (
        "m[r] = max[c](x[r,c]); y[r] = sum[c](exp2(x[r,c] * 1.5 - m[r] * 1.5))",
        {"r": 3, "c": 1000},
        {"x": "-inf until the end"},
    ),
    "a base of two, distributed, beside the least number": (
        "m[r] = max[c](x[r,c] + z[c]); y[r] = sum[c](exp2((x[r,c] + z[c]) * 1.5 - m[r] * 1.5))",
        {"r": 15, "c": 3},
        {"z": "rows of least", "x": "rows of -1e37"},
    ),
    "a minimum of infinities at first": (
        "m[r] = min[c](x[r,c]); y[r] = sum[c](exp((m[r] - x[r,c]) * 2.5))",
        {"r": 3, "c": 1000},
        {"x": "inf until the end"},
    ),
    "rows of -inf": ("y[r] = logsumexp[c](x[r,c])", {"r": 6, "c": 700}, {"x": "rows of -inf"}),
    "rows of inf": ("y[r] = logsumexp[c](x[r,c])", {"r": 6, "c": 700}, {"x": "rows of inf"}),
    "an outlier before all others": (
        "y[r,c] = (x[r,c] - mean[c](x[r,c])) * rsqrt(var[c](x[r,c]) + 0.00001)",
        {"r": 6, "c": 1000},
        {"x": "an outlier first"},
    ),
    "rows of the least number": (
        "y[r,c] = softmax[c](x[r,c])",
        {"r": 6, "c": 700},
        {"x": "rows of least"},
    ),
    "values that some rows do not see": (
        "where j <= i; y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e])",
        {"i": 40, "j": 40, "d": 8, "e": 20},
        {"v": "one NaN"},
    ),
    "values of other documents": (
        "o: int32[i](index < 3); g: int32[j](index < 3); where o[i] == g[j]; "
        "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e])",
        {"i": 40, "j": 300, "d": 8, "e": 20},
        {"v": "one infinity", "k": "one NaN"},
    ),
    "distances with a large factor": (
        "where j <= i + 260; p[i,j] = sum[d](q[i,d] * k[j,d]) * 0.3 + s[0] * (j - i - 260)\n"
        "y[i,e] = sum[j](softmax[j](p[i,j]) * v[j,e])\nl[i] = logsumexp[j](p[i,j])\n-> y, l",
        {"i": 40, "j": 300, "d": 8, "e": 20, "z": 1},
        {"s": "one outlier"},
    ),
    "scores with a large factor": (
        "y[i,e] = sum[j](sigmoid(sum[d](q[i,d] * k[j,d]) * 3e6) * v[j,e])",
        {"i": 20, "j": 30, "d": 8, "e": 20},
        {"k": "large"},
    ),
    "rows of scores of -inf": (
        "p[i,j] = sum[d](q[i,d] * k[j,d]) * 0.3 + a[i,j]\n"
        "y[i,e] = sum[j](softmax[j](p[i,j]) * v[j,e])\nl[i] = logsumexp[j](p[i,j])\n-> y, l",
        {"i": 20, "j": 300, "d": 8, "e": 20},
        {"a": "rows of -inf"},
    ),
    "subnormal elements beside infinities": (
        "a: bfloat16; b: bfloat16; s[i,j] = sum[k](a[i,k] * b[k,j]); "
        "m[i] = max[j](s[i,j] * s[i,j]); y[i,j] = s[i,j] / (1 + m[i]); -> m, y",
        {"i": 31, "j": 8, "k": 33},
        {"a": "tiny", "b": "one largest"},
    ),
    "filters that meet a border": (
        "x: float32[b,15,g]; y[b,p,g] = sum[k](inside(x[b,p + k - 1,g], 0) * z[k,g])",
        {"b": 2, "p": 15, "g": 40, "k": 3},
        {"z": "rows of inf"},
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_went_wrong_once_is_right(name):
    assert complaints((*KNOWN[name], 1), 10, [QUICK]) == []


@settings(max_examples=20)
@given(cases())
def test_kernels_are_right_at_the_edges(case):
    assert complaints(case, 2, [QUICK]) == []


@settings(max_examples=12)
@given(cases())
def test_kernels_stay_within_their_arrays(case):
    assert complaints(case, 2, BETWEEN_WALLS) == []


def test_a_variable_without_a_value_holds_what_shows_in_results(tmp_path):
    w = workload("y[i] = x[i] * v[i]", i=48)
    space = space_for(w, TARGET)
    right = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
    kernel = planted(right, r"\A", "float unset(void) { float r; return r; }\n", entry="wrong")
    (library,) = compile_apart([kernel], TARGET, tmp_path, *TRAPS)
    library.unset.restype = ctypes.c_float
    assert library.unset() < -1e38


LEAVES = {
    "reads the float before": "{ volatile float x = ((float *)buffers[0])[-1]; }",
    "reads the byte behind": "{ volatile char x = ((char *)buffers[0])[4 * 48]; }",
    "writes the byte behind": "((char *)buffers[2])[4 * 48] = 1;",
    "has no meaning": "{ int many[4]; for (volatile int i = 0; i < 5; i++) many[i] = i; }",
    "is too large": "{ volatile int x = 0x7fffffff; x = x + 1; }",
}


@pytest.mark.parametrize("name", LEAVES)
def test_kernels_that_leave_their_arrays_are_found(name, tmp_path):
    w = workload("y[i] = x[i] * v[i]", i=48)
    space = space_for(w, TARGET)
    right = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
    wrong = planted(right, r"  tw_call call = .*;", rf"\g<0>\n  {LEAVES[name]}", entry="wrong")
    (library, _) = compile_apart([right, wrong], TARGET, tmp_path, *TRAPS, "-Wno-error")
    inputs = edge_inputs(w.program, {})

    def ends(kernel: Kernel) -> list[str]:
        return [outcome(kernel, library, inputs, 1, p.memory, p.run)[0] for p in BETWEEN_WALLS]

    assert not any(ends(right))
    assert any("ended by" in found for found in ends(wrong))


@pytest.mark.slow
@settings(max_examples=2000)
@given(cases())
def test_many_kernels_stay_within_their_arrays(case):
    assert complaints(case, 4, TRAPPED) == []


@pytest.mark.slow
@settings(max_examples=2000)
@given(cases())
def test_many_kernels_are_right_at_the_edges(case):
    assert complaints(case, 4) == []
