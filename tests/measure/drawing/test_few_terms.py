"""Inputs that are mostly zero: of which programs there are any, and what they tell."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.few_terms import sparse_operands, with_few_terms
from tilewright.measure.drawing.further_draws import further_draws
from tilewright.measure.drawing.tables import tables_of
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload

LONG = 1 << 17
TOLD = {
    "a sum": ("y[i] = sum[j](x[i,j])", {"x": 1}),
    "a mean": ("y[i] = mean[j](x[i,j])", {"x": 1}),
    "products": ("y[i] = sum[j](x[i,j] * abs(w[j]))", {"x": 1}),
    "squares": ("y[i,j] = x[i,j] * rsqrt(sum[j](x[i,j] * x[i,j]))", {"x": 1}),
    "a sum that is divided": ("y[i] = sum[j](v[j,i] / (x[i,j] * x[i,j] + 1))", {"v": 0}),
    "two sums": ("a[i] = sum[j](x[i,j]); b[i] = sum[j](v[i,j] * 2); -> a, b", {"x": 1, "v": 1}),
    "beside a softmax": ("y[i] = sum[j](softmax[j](x[i,j]) * v[i,j])", {"v": 1}),
    "a bounded one": ("n: int32[i](index < 9); where j >= n[i]; y[i] = sum[j](x[i,j])", {"x": 1}),
}
UNTOLD = {
    "greatest values": "y[i] = max[j](x[i,j])",
    "terms that are 1 for 0": "y[i] = sum[j](exp(x[i,j]))",
    "terms that are as good as equal": "y[i] = var[j](x[i,j])",
    "as an operand's other factor": "y[i] = sum[j](x[i,j] * exp(x[i,j]))",
    "none by itself": "y[i] = sum[j](x[i,j] / x[i,j])",
    "of what is made of them": "t[i,j] = x[i,j] + 1; s[i] = sum[j](x[i,j]); "
    "y[i] = sum[j](t[i,j]) * s[i]",
    "whole numbers": "x: int8[i,j]; y[i] = sum[j](x[i,j] * 0.5)",
}


def made(text, long=LONG):
    return workload(text, i=3, j=long)


@pytest.mark.parametrize(("text", "operands"), TOLD.values(), ids=TOLD)
def test_factors_of_long_sums_are_mostly_zero(text, operands):
    work = made(text)
    first = one_draw(work, 0)
    (other,) = with_few_terms(first)
    *_, last = islice(further_draws(first), tables_of(work.program) + 1)
    assert all(np.array_equal(last.inputs[name], other.inputs[name]) for name in operands)
    changed = {n for n in first.inputs if other.inputs[n] is not first.inputs[n]}
    assert changed == operands.keys()
    for name, dimension in operands.items():
        before, after = (np.moveaxis(d.inputs[name], dimension, -1) for d in (first, other))
        assert 0 < np.mean(after != 0) < 1 / 4
        assert after[..., [0, -1, -2]].all()
        assert (abs(after) >= abs(before))[after != 0].all()


@pytest.mark.parametrize("text", UNTOLD.values(), ids=UNTOLD)
def test_sums_that_would_be_no_better_are_left_alone(text):
    long_enough = 1 << 16
    assert sparse_operands(made(TOLD["a sum"][0], long_enough).program)
    work = made(text, long_enough)
    assert not sparse_operands(work.program)
    assert list(with_few_terms(one_draw(work, 0))) == []


def test_short_sums_tell_by_themselves():
    assert not sparse_operands(made(TOLD["a sum"][0], 1 << 13).program)
    assert not sparse_operands(workload("matmul m=3 n=3 k=8192").program)


def test_long_products_of_matrices_have_few_terms_too():
    first = one_draw(workload("matmul m=3 n=3 k=131072"), 0)
    other = next(iter(further_draws(first)))
    left, right = (other.inputs[name] for name in "AB")
    assert 0 < np.mean(left != 0) < 1 / 4
    low, high = other.allowed()["C"]
    for lost in (1, 2, 5):
        sums = left[:, :-lost].astype(np.float64) @ right[:-lost]
        assert not agrees(sums, low, high).all()
    assert agrees(left.astype(np.float64) @ right, low, high).all()


@pytest.mark.parametrize("lost", [1, 2, 5, 31])
@pytest.mark.parametrize("end", [slice(None, -1), slice(None, None, -1)])
def test_one_lost_term_tells_and_the_order_does_not(lost, end):
    for seed in range(8):
        (other,) = with_few_terms(one_draw(made(TOLD["a sum"][0]), seed))
        low, high = other.allowed()["y"]
        terms = other.inputs["x"][:, end]
        right = np.cumsum(other.inputs["x"][:, ::-1], axis=1, dtype=np.float32)[:, -1]
        assert ((low <= right) & (right <= high)).all()
        wrong = terms[:, :-lost].sum(axis=1, dtype=np.float64)
        assert ((wrong < low) | (wrong > high)).all(), "in each row, for rows may be few"
