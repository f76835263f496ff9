"""A value that a kernel computes twice is the same number twice: a difference of both is zero."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import compile_apart, outcome
from tilewright.spaces.cpu.target import MEANING
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.workload import Workload

TARGET = this_cpu()
ROWS = {"r": 6, "c": 128}
ONES = {  # sums of softmax, of scores that are far apart: each is 1
    "scaled": ("y[r,c] = softmax[c](x[r,c] * 3e9)", ROWS),
    "scaled less": ("y[r,c] = softmax[c](x[r,c] * 333333.3)", ROWS),
    "a stage": ("s[r,c] = x[r,c] * 3e9; y[r,c] = softmax[c](s[r,c])", ROWS),
    "squares": ("y[r,c] = softmax[c](x[r,c] * x[r,c] * 1e7 - z[c])", ROWS),
    "columns": ("y[r,c] = softmax[r](x[r,c] * 3e9)", {"r": 128, "c": 6}),
    "doubles": ("x: float64; y: float64; y[r,c] = softmax[c](x[r,c] * 3e19)", ROWS),
    "a map": ("m[r,c] = x[r,c] * 3e9 - z[c]; y[r,c] = softmax[c](m[r,c])", ROWS),
}
CHAINS = {  # values of 1, whose means by any weights are 1
    "scores": "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 3e6) * v[j,e])",
    "a mask": "y[i,e] = sum[j](softmax[j](sum[d](q[i,d]*k[j,d]) * 3e6 + a[i,j] * 1e4) * v[j,e])",
    "a bound": "where j <= i + 5\n"
    "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 3e6 + a[i,j] * b[j]) * v[j,e])",
    "a cap": "y[i,e] = sum[j](softmax[j](9e6 * tanh(sum[d](q[i,d] * k[j,d]) / 5)) * v[j,e])",
}
ROOTS = {  # of what is never below zero
    "rows": ("m[r] = max[c](x[r,c] * x[r,c]); y[r,c] = sqrt(m[r] - x[r,c] * x[r,c])", ROWS),
    "least": ("m[r] = min[c](x[r,c] * z[c]); y[r,c] = sqrt(x[r,c] * z[c] - m[r])", ROWS),
    "columns": ("m[c] = max[r](x[r,c] * x[r,c]); y[r,c] = sqrt(m[c] - x[r,c] * x[r,c])", ROWS),
    "a map": ("p[r,c] = x[r,c] * z[c]; y[r,c] = sqrt(p[r,c] - z[c] * x[r,c])", ROWS),
    "a sum": ("y[r] = sum[c](sqrt(x[r,c] * z[c] - z[c] * x[r,c]))", ROWS),
}


def kernels(w: Workload, count: int = 6) -> list[Kernel]:
    """Kernels of some schedules of each template that serves it."""
    space = space_for(w, TARGET)
    drawn = np.unique(space.sample(np.random.default_rng(3), count), axis=0)
    return [space.lower(space.schedule(row)) for row in drawn]


def drawn(w: Workload) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(7)
    shapes = {o.name: (o.shape, o.element.numpy) for o in w.inputs}
    return {n: generator.standard_normal(shape).astype(kind) for n, (shape, kind) in shapes.items()}


def results(w: Workload, folder, inputs) -> list[np.ndarray]:
    made = kernels(w)
    libraries = compile_apart(made, TARGET, folder)
    found = [outcome(*each, inputs) for each in zip(made, libraries, strict=True)]
    assert [failed for failed, _ in found] == [""] * len(made)
    return [values[w.outputs[0].name] for _, values in found]


@pytest.mark.parametrize("name", ONES)
def test_sums_of_softmax_are_one(name, tmp_path):
    text, extents = ONES[name]
    w = workload(text, **extents)
    axis = 0 if name == "columns" else 1
    for y in results(w, tmp_path, drawn(w)):
        np.testing.assert_allclose(y.sum(axis=axis, dtype=np.float64), 1, rtol=1e-5)


@pytest.mark.parametrize("name", CHAINS)
def test_means_of_ones_are_one(name, tmp_path):
    w = workload(CHAINS[name], i=20, j=80, d=16, e=20)
    inputs = drawn(w)
    inputs["v"][...] = 1
    for y in results(w, tmp_path, inputs):
        np.testing.assert_allclose(y, 1, rtol=1e-5)


@pytest.mark.parametrize("name", ROOTS)
def test_differences_from_a_maximum_are_not_negative(name, tmp_path):
    text, extents = ROOTS[name]
    w = workload(text, **extents)
    for y in results(w, tmp_path, drawn(w)):
        assert not np.isnan(y).any()


def test_flags_of_meaning_are_no_part_of_what_measurements_are_known_by():
    """Records stay those of the machine when such a flag is added."""
    assert TARGET.compiler_flags == (*TARGET.flags, *MEANING)
    assert not set(MEANING) & set(TARGET.to_json()["flags"])
