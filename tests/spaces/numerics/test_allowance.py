"""What right kernels may give, held to NumPy's own float32 arithmetic and to planted mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.numerics.allowance import agrees, allowed, error_of_sums
from tilewright.spaces.operators import workload


def of(**parameters):
    """A workload's inputs, their sums, and the least and greatest values allowed."""
    work = workload("matmul", **parameters)
    inputs = work.make_inputs(0)
    sums = work.matmul.contract(inputs)
    return work, inputs, sums, *allowed(work.matmul, sums, inputs)


@pytest.mark.parametrize("k", [1, 17, 300])
def test_a_plain_float32_sum_is_allowed_and_a_lost_term_is_not(k):
    _, inputs, sums, low, high = of(m=8, n=8, k=k)
    result = np.zeros((8, 8), dtype=np.float32)
    for p in range(k):
        result += inputs["A"][:, p, None] * inputs["B"][None, p]
    assert agrees(result, low, high).all()
    lost = result - inputs["A"][:, 0, None] * inputs["B"][None, 0]
    assert not agrees(lost, low, high).all()
    unit = 2.0**-23
    error = 2 * unit * np.abs(sums) + unit * (2 * k + 16)
    np.testing.assert_allclose(high - sums, error, rtol=0.1)
    np.testing.assert_allclose(sums - low, error, rtol=0.1)


def test_whole_sums_are_exact():
    work, _, sums, low, high = of(m=5, n=6, k=300, dtype="int8")
    assert error_of_sums(work.matmul) == (0.0, 0.0)
    assert (low == sums).all()
    assert (high == sums).all()
    *_, sums, low, high = of(m=5, n=6, k=300, dtype="int8", out="int8")
    assert (low == np.clip(sums, -128, 127)).all()
    assert (high == low).all()


@pytest.mark.parametrize("out", ["bfloat16", "float16"])
def test_a_rounded_sum_is_one_of_at_most_two_neighbours(out):
    work, _, sums, low, high = of(m=40, n=40, k=50, out=out)
    rounded = sums.astype(np.float32).astype(work.outputs[0].element.numpy).astype(np.float32)
    assert ((low == high) | (np.abs(high - low) < 2.1 * work.outputs[0].element.epsilon * 8)).all()
    assert (low == high).mean() > 0.9
    assert agrees(rounded, low, high).all()


def test_not_a_number_is_wanted_where_it_is_certain_and_allowed_where_it_may_be():
    work, _, sums, low, high = of(m=30, n=30, k=40, epilogue="sqrt(x)")
    sure = np.abs(sums) > 1e-4
    assert (np.isnan(low) == (sums < 0))[sure].all()
    nans = np.full(work.outputs[0].shape, np.nan)
    assert (agrees(nans, low, high) == (sums < 0))[sure].all()
    assert not agrees(np.zeros(work.outputs[0].shape), low, high)[sure].any()
    tiny = np.full(work.outputs[0].shape, 1e-9)
    low, high = allowed(work.matmul, tiny, {})
    for value in (np.nan, 0.0, 1e-5):
        assert agrees(np.full(work.outputs[0].shape, value), low, high).all()


def test_division_by_what_may_be_zero_gives_anything():
    work = workload("matmul", m=1, n=4, k=40, epilogue="1 / x")
    sums = np.array([[1e-9, -1e-9, 0.5, -2.0]])
    low, high = allowed(work.matmul, sums, {})
    assert (np.isinf(low) & np.isinf(high)).tolist() == [[True, True, False, False]]
    for value in (np.nan, np.inf, -np.inf, 3.0):
        found = np.where(np.abs(sums) > 1e-3, 1 / sums, value)
        assert agrees(found, low, high).all()


@pytest.mark.parametrize(
    ("low", "high", "right", "wrong"),
    [
        (1.0, 2.0, [1.0, 1.5, 2.0], [0.9, 2.1, np.inf, -np.inf, np.nan]),
        (1.0, np.inf, [1.0, np.inf], [0.9, -np.inf, np.nan]),
        (-np.inf, 1.0, [-np.inf, 1.0], [1.1, np.inf, np.nan]),
        (np.inf, np.inf, [np.inf], [0.0, -np.inf, np.nan]),
        (-np.inf, np.inf, [0.0, np.inf, -np.inf, np.nan], []),
        (np.nan, np.nan, [np.nan], [0.0, np.inf, -np.inf]),
    ],
)
def test_values_agree_that_lie_between_the_bounds(low, high, right, wrong):
    ends = np.float64(low), np.float64(high)
    assert agrees(np.array(right), *ends).all()
    assert not agrees(np.array(wrong), *ends).any()


def test_overflow_is_infinite_where_it_is_certain_and_may_be_near_the_edge():
    work = workload("matmul", m=1, n=3, k=8, epilogue="exp(x)")
    sums = np.array([[88.722839, 120.0, 50.0]])  # exp of the first is the largest float32
    low, high = allowed(work.matmul, sums, {})
    assert np.isfinite(low).tolist() == [[True, False, True]]
    assert np.isfinite(high).tolist() == [[False, False, True]]
    work = workload("matmul", m=1, n=3, k=8, dtype="float16", epilogue="x * 1000")
    low, high = allowed(work.matmul, np.array([[70.0, 65.5, 60.0]]), {})
    assert np.isinf(low).tolist() == [[True, False, False]]
    assert np.isinf(high).tolist() == [[True, False, False]]


def truncated(x: np.ndarray, bits: int) -> np.ndarray:
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.trunc(np.ldexp(mantissa, bits)), exponent - bits)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "tfloat32"])
def test_sums_that_tensor_cores_truncate_are_right(dtype):
    """Sixteen products at a time, aligned with the sum; inputs such that the sums grow."""
    terms, count = 28672, 400
    work = workload("matmul", m=1, n=count, k=terms, dtype=dtype, out="float32")
    generator = np.random.default_rng(0)
    exact, found = np.zeros(count), np.zeros(count)
    for _ in range(0, terms, 16):
        left = generator.random((16, count)) * 2 - 1
        products = left * (0.98 * (generator.random((16, count)) * 2 - 1) + 0.02 * left)
        exact += products.sum(axis=0)
        largest = np.maximum(np.abs(found), np.abs(products).max(axis=0))
        last = np.ldexp(1.0, np.frexp(largest)[1] - 25)
        aligned = np.trunc(found / last) + np.trunc(products / last).sum(axis=0)
        found = truncated(aligned * last, 24)
    relative, absolute = error_of_sums(work.matmul)
    errors = np.abs(found - exact)
    assert (errors <= np.abs(exact) * relative + absolute).all()
    assert errors.max() > 2**-23 * 2 * terms  # or this says nothing
