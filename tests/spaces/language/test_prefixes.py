"""Reductions over prefixes: those of the condition's terms, in linear time."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.derivation.rounding import allowance, reduced_arrays
from tilewright.spaces.derivation.rounding.rows import Rows
from tilewright.spaces.derivation.work import work
from tilewright.spaces.language import evaluation, program
from tilewright.spaces.language.prefixes import BLOCK, prefix_of, running_sums

PREFIXES = {
    "y[r, i] = sum[j: j <= i](x[r, j])": (False, False),
    "y[r, i] = sum[j: j < i](exp(x[r, j]) * w[j])": (False, True),
    "y[r, i] = sum[j: i <= j](x[r, j] * w[j])": (True, False),
    "y[i, r] = sum[j: j > i](x[r, j] + j)": (True, True),
    "m[r] = max[j](x[r, j])\ny[r, i] = sum[j: i > j](x[r, j] - m[r]) / (i + 1)": (False, True),
    "y[r, i] = max[j: j <= i](x[r, j])": (False, False),
    "y[r, i] = min[j: j > i](x[r, j] + 1) * 2": (True, True),
    "y[r, i] = prod[j: i >= j](x[r, j] + 1.5)": (False, False),
    "n[r, i] = max[j: j < i](k[r, j])\ny[r, i] = max(n[r, i], -9) + 0.5": (False, True),
    "n[r, i] = sum[j: j <= i](k[r, j])\ny[r, i] = n[r, i] + 0.5": (False, False),
}
RECTANGLES = {
    "terms of the row": "y[r, i] = sum[j: j <= i](x[r, j] * w[i])",
    "a bound apart": "y[r, i] = sum[j: j <= i + 1](x[r, j])",
    "two bounds": "y[r, i] = sum[j: j <= i and i - j < 4](x[r, j])",
    "no prefix": "y[r, i] = sum[j: j != i](x[r, j])",
    "another reducer": "y[r, i] = argmax[j: j <= i](x[r, j])",
    "two axes": "y[i] = sum[r, j: j <= i](x[r, j])",
}


def made_of(text, rows=3, i=11, j=11):
    kinds = "k: int32[r, j]\n" if "k[" in text else ""
    return program(kinds + text, r=rows, i=i, j=j)


def inputs_of(made, seed):
    g = np.random.default_rng(seed)
    return {
        o.name: g.integers(-8, 8, o.shape).astype(o.dtype)
        if o.dtype.startswith("int")
        else g.standard_normal(o.shape).astype(np.float32)
        for o in made.operands
    }


def as_rectangles(monkeypatch, function, *arguments):
    with monkeypatch.context() as patch:
        for module in (evaluation, allowance, reduced_arrays):
            patch.setattr(module, "prefix_of", lambda program, stage: None)
        return function(*arguments)


@pytest.mark.parametrize(("text", "kind"), PREFIXES.items())
def test_a_prefix_is_found_where_terms_are_those_of_one_axis(text, kind):
    made = made_of(text)
    (found,) = filter(None, (prefix_of(made, stage) for stage in made.stages))
    assert (found.backwards, found.exclusive) == kind


@pytest.mark.parametrize("text", RECTANGLES.values(), ids=RECTANGLES)
def test_other_sums_are_not_over_prefixes(text):
    made = made_of(text)
    assert not any(prefix_of(made, stage) for stage in made.stages)


@pytest.mark.parametrize("text", PREFIXES)
@pytest.mark.parametrize(("i", "j"), [(2, 2), (11, 11), (200, 200), (5, 9), (90, 70)])
def test_sums_and_bounds_are_those_of_the_condition(text, i, j, monkeypatch):
    made = made_of(text, i=i, j=j)
    inputs = inputs_of(made, i)
    if "x" in inputs and i % 2 and "max" not in text:
        inputs["x"][1, [0, j // 2, j - 1]] = np.inf, np.nan, -np.inf
    found = evaluation.evaluate(made, inputs)["y"]
    wanted = as_rectangles(monkeypatch, evaluation.evaluate, made, inputs)["y"]
    np.testing.assert_allclose(found, wanted, 1e-12, 1e-12)
    for rows in (None, Rows({"r": np.array([0, 2])})):
        ends = allowance.allowed(made, inputs, rows)["y"]
        others = as_rectangles(monkeypatch, allowance.allowed, made, inputs, rows)["y"]
        for end, other in zip(ends, others, strict=True):
            np.testing.assert_allclose(end, other, 1e-6, 1e-9)


@pytest.mark.parametrize("chunk", [7, 64, 1 << 20])
def test_pieces_are_put_together(chunk, monkeypatch):
    made = made_of("y[r, i] = sum[j: j <= i](x[r, j])", 5, 40, 40)
    inputs = inputs_of(made, 0)
    for module in (evaluation, allowance):
        monkeypatch.setattr(module, "CHUNK", chunk)
    wanted = np.cumsum(inputs["x"].astype(np.float64), axis=1)
    np.testing.assert_allclose(evaluation.evaluate(made, inputs)["y"], wanted, 1e-12, 1e-12)
    low, high = allowance.allowed(made, inputs)["y"]
    assert ((low <= wanted) & (wanted <= high) & (high - low < 1e-3)).all()


def test_a_prefix_that_no_rectangle_could_hold_is_added_up():
    made = made_of("y[r, i] = sum[j: j >= i](x[r, j])", 2, 1 << 20, 1 << 20)
    inputs = inputs_of(made, 0)
    wanted = np.cumsum(inputs["x"].astype(np.float64)[:, ::-1], axis=1)[:, ::-1]
    np.testing.assert_allclose(evaluation.evaluate(made, inputs)["y"], wanted, 1e-9, 1e-9)
    assert work(made).arithmetic == 2 << 20
    low, high = allowance.allowed(made, inputs)["y"]
    assert ((low <= wanted) & (wanted <= high)).all()


@pytest.mark.parametrize("count", [1, BLOCK, BLOCK + 1, 5000, BLOCK**2 + 1])
def test_running_sums_of_equal_terms_are_as_accurate_as_blocks(count):
    terms = np.full((2, count), np.float32(0.1))
    found = running_sums(terms)
    wanted = np.float64(np.float32(0.1)) * np.arange(1, count + 1)
    assert found.shape == terms.shape
    assert (abs(found - wanted) / wanted).max() < 8 * np.finfo(np.float32).eps
