"""Bounds of stages that are computed step by step hold what loops in float32 come to, and show
mistakes."""

import numpy as np
import pytest

from tests.spaces.cycle_programs import TEXTS, expected, extents_of
from tilewright.measure.drawing.program_sensitivity import Sample, sensitivity
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.rows import Rows, first_steps, row_axes
from tilewright.spaces.language import program
from tilewright.spaces.language.inputs import draw

DELTA = """
n[b, t] = 1 / sqrt(sum[e](k[b, t, e] * k[b, t, e]))
u[b, t, d] = sum[e](inside(S[b, t - 1, d, e], 0) * n[b, t] * k[b, t, e])
S[b, t, d, e] = (inside(S[b, t - 1, d, e], 0)
    + sigmoid(g[b, t]) * n[b, t] * k[b, t, e] * (v[b, t, d] - u[b, t, d]))
o[b, t, d] = sum[e](S[b, t, d, e] * q[b, t, e])"""
FLOAT = np.float32


def drawn(found, seed=1, scale=1.0):
    inputs = draw(found, seed)
    return {name: (np.asarray(array) * FLOAT(scale)) for name, array in inputs.items()}


def last(found, inputs, **options):
    return list(allowed(found, inputs, **options).values())[-1]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("steps", [1, 40])
def test_exact_results_are_within_bounds_that_are_close(name, steps):
    found = program(TEXTS[name], **extents_of(name, t=steps))
    inputs = drawn(found, scale=0.5)
    low, high = last(found, inputs)
    wanted = expected(name, inputs)
    assert ((low <= wanted) & (wanted <= high)).all()
    assert np.median(high - low) <= 1e-3 * np.abs(wanted).max()


def steps_of_delta(inputs, turned):
    """Steps in float32, with sums in one order or the other."""
    k = inputs["k"] / np.sqrt((inputs["k"] ** 2).sum(-1, dtype=FLOAT, keepdims=True))
    gate = 1 / (1 + np.exp(-inputs["g"]))
    order = slice(None, None, -1 if turned else 1)
    state = np.zeros((*inputs["v"][:, 0].shape, k.shape[-1]), FLOAT)
    found = []
    for t in range(k.shape[1]):
        u = (state * k[:, t, None])[..., order].sum(-1, dtype=FLOAT)
        scaled = gate[:, t, None, None] * k[:, t, None]
        state = state + scaled * (inputs["v"][:, t] - u)[..., None]
        found.append((state * inputs["q"][:, t, None])[..., order].sum(-1, dtype=FLOAT))
    return np.stack(found, 1)


def chunks_of_delta(inputs, chunk):
    """Chunks of steps in float32 whose products of matrices are solved (the WY form)."""
    k = inputs["k"] / np.sqrt((inputs["k"] ** 2).sum(-1, dtype=FLOAT, keepdims=True))
    gate = (1 / (1 + np.exp(-inputs["g"]))).astype(FLOAT)
    state = np.zeros((k.shape[0], k.shape[-1], inputs["v"].shape[-1]), FLOAT)
    found = []
    for start in range(0, k.shape[1], chunk):
        part = slice(start, start + chunk)
        own, q, v, g = k[:, part], inputs["q"][:, part], inputs["v"][:, part], gate[:, part, None]
        seen = np.tril(np.einsum("bte,bse->bts", g * own, own), -1)
        solved = np.linalg.inv(np.eye(own.shape[1], dtype=FLOAT) + seen)
        added = solved @ (g * (v - own @ state))
        scores = np.tril(np.einsum("bte,bse->bts", q, own))
        found.append(q @ state + scores @ added)
        state = state + np.swapaxes(own, 1, 2) @ added
    return np.concatenate(found, 1)


@pytest.mark.parametrize("steps", [33, 400])
def test_loops_and_chunks_in_float32_are_within_bounds_and_mistakes_are_not(steps):
    found = program(DELTA, b=2, t=steps, d=6, e=16)
    inputs = drawn(found)
    low, high = last(found, inputs)
    right = steps_of_delta(inputs, False)
    others = (steps_of_delta(inputs, True), chunks_of_delta(inputs, 16))
    for result in (right, *others):
        assert ((low <= result) & (result <= high)).all()
    changed = {**inputs, "k": inputs["k"].copy()}
    changed["k"][:, steps // 2] *= -0.5
    changed["k"][:, steps // 2, 0] = 0.25
    wrong = steps_of_delta(changed, False)
    outside = (wrong < low) | (wrong > high)
    assert not outside[:, : steps // 2].any()
    assert outside[:, steps // 2].any()
    halves = inputs | {"v": inputs["v"].astype(np.float16).astype(FLOAT)}
    assert ((steps_of_delta(halves, False) - right) != 0).any()
    rounded = steps_of_delta(halves, False)
    assert np.mean((rounded < low) | (rounded > high)) > 0.01


def test_bounds_of_some_rows_and_first_steps_are_those_of_all():
    found = program(TEXTS["gates"], b=3, t=20, d=8)
    inputs = drawn(found)
    assert set(row_axes(found)) == {"b", "d"}
    steps = first_steps(found, 7).which
    assert list(steps["t"]) == list(range(7))
    rows = Rows({"b": np.array([0, 2]), "d": np.array([1, 5, 6]), **steps})
    some, every = last(found, inputs, rows=rows), last(found, inputs)
    for a, b in zip(some, every, strict=True):
        np.testing.assert_array_equal(a, b[np.ix_([0, 2], range(7), [1, 5, 6])])


def test_first_steps_of_those_that_go_down_are_the_last_ones():
    found = program(TEXTS["matrix backwards"], b=3, t=20, d=8, e=8)
    inputs, rows = drawn(found), first_steps(found, 7)
    assert list(rows.which["t"]) == list(range(13, 20))
    for some, every in zip(last(found, inputs, rows=rows), last(found, inputs), strict=True):
        np.testing.assert_array_equal(some, every[:, 13:])


def test_steps_up_and_down_have_no_first_ones():
    text = "g[t] = inside(g[t - 1], 0) + x[t]; h[t] = inside(h[t + 1], 0) + g[t]"
    assert first_steps(program(text, t=99), 5) is None


def test_steps_that_are_read_elsewhere_have_no_first_ones():
    text = "h[b, t] = inside(h[b, t - 1], 0) + x[b, t]; y[b] = sum[t](h[b, t])"
    assert first_steps(program(text, b=2, t=99), 5) is None


@pytest.mark.parametrize("name", TEXTS)
def test_infinities_and_missing_numbers_are_where_they_must_be(name):
    found = program(TEXTS[name], **extents_of(name))
    inputs = {n: a.copy() for n, a in drawn(found).items()}
    first = inputs.get("x", inputs.get("v"))
    first[0, 3] = np.inf
    first[1, 4] = np.nan
    low, high = last(found, inputs)
    with np.errstate(all="ignore"):
        wanted = expected(name, inputs)
    sure = (low > -np.inf) | (high < np.inf) | np.isnan(low)
    right = (low <= wanted) & (wanted <= high) | (np.isnan(low) & np.isnan(wanted))
    assert right[sure].all()
    assert sure[:, :3].all()


@pytest.mark.parametrize("name", TEXTS)
def test_mistakes_in_steps_show(name):
    found = program(TEXTS[name], **extents_of(name, t=100))
    sample = Sample.of(found)
    names = [mistake.name for mistake in sample.mistakes()]
    assert "steps along t forgotten" in names
    assert sensitivity(found).share > 0
