"""Bounds in linear time are those of all pairs of positions, little wider, and refuse mistakes."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tests.spaces.recurrent_programs import PRODUCT, TEXTS, extents_of
from tilewright.spaces.derivation.rounding import allowance
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.carried import carried_linearly, points_of_state
from tilewright.spaces.derivation.rounding.rows import Rows
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.numerics.allowance import agrees

DECAYS = ("a", "g", "i", "l")


def made_of(name, **changes):
    return program(TEXTS[name], **extents_of(name, **changes))


def scaled(inputs, scale):
    """Give decays another size."""
    return {n: (x * scale).astype(x.dtype) if n in DECAYS else x for n, x in inputs.items()}


def by_pairs(made, inputs, rows, monkeypatch):
    """Return the bounds from all pairs of positions."""
    with monkeypatch.context() as patch:
        patch.setattr(allowance, "carried_linearly", lambda program: None)
        return allowed(made, inputs, rows)["y"]


def check(made, inputs, monkeypatch, rows=None):
    """Hold bounds to float64 and to those from all pairs, of these rows."""
    assert carried_linearly(made) is not None
    low, high = allowed(made, inputs, rows)["y"]
    with np.errstate(over="ignore"):
        exact = made.outputs[0].element.cast(evaluate(made, inputs)["y"])
    if rows is not None:
        exact = exact[rows.which["h"]]
    assert agrees(exact, low, high).all()
    least, most = by_pairs(made, inputs, rows, monkeypatch)
    known, wanted = (np.isfinite(a) & np.isfinite(b) for a, b in ((low, high), (least, most)))
    assert known.sum() >= 0.95 * wanted.sum()
    both = known & wanted
    both[both] = most[both] > least[both]
    if both.sum() > 9:
        assert np.median((high[both] - low[both]) / (most[both] - least[both])) < 6


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 30.0, 300.0])
def test_bounds_are_those_of_all_pairs(name, scale, monkeypatch):
    made = made_of(name, t=75, s=75)
    check(made, scaled(draw(made, 1), scale), monkeypatch)


POWERS = {
    "l[h, t] - l[h, s]": "",
    "l[h, t, d] - l[h, s, d]": "",
    "(l[h, t, e] - l[h, s, e]) * 2": "",
    "g[h] * (s - t)": "",
    "g[d] * (s - t) / 4 + l[h, t] - l[h, s]": "",
    "m[h, t] - m[h, s] + i[h, s]": "m[h, t] = sum[s: s <= t](a[h, s])\n",
    "i[h, s] + b[t]": "",
}


def random_text(seed):
    """Write a sum over prefixes whose terms separate."""
    choose = random.Random(seed)
    exponent = choose.choice(list(POWERS))
    if choose.random() < 0.5:
        exponent = re.sub(r" \+ [bi]\[[hst, ]*\]$", "", exponent)
    power = choose.choice(["", f"{choose.choice(['exp', 'exp2'])}({exponent}) * "])
    operator = choose.choice(["<=", "<", ">=", ">"])
    if "m[" in power:
        operator = choose.choice(["<=", "<"])
    before = POWERS[exponent] if exponent in POWERS and "m[" in power else ""
    if "d]" in power or choose.random() < 0.4:
        term, over = "q[h, t, d] * k[h, s, d] * v[h, s, e]", "s, d"
    else:
        term, over = f"{PRODUCT} * v[h, s, e]", "s"
    further = choose.choice(["", " * tanh(w[s, e])", " * r[t]", " / 3", " * (s + 1)"])
    return f"{before}y[h, t, e] = sum[{over}: s {operator} t]({power}{term}{further})"


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed, monkeypatch):
    text, choose = random_text(seed), random.Random(seed + 1000)
    positions = choose.choice([2, 7, 8, 9, 31, 33, 70, 100])
    extents = {"h": choose.choice([1, 3]), "t": positions, "s": positions, "d": 5, "e": 6}
    made = program(text, **{a: n for a, n in extents.items() if re.search(rf"\b{a}\b", text)})
    inputs = scaled(draw(made, seed), choose.choice([0.001, 0.1, 1.0, 10.0]))
    check(made, inputs, monkeypatch)
    if extents["h"] > 1:
        check(made, inputs, monkeypatch, Rows({"h": np.array([0, 2])}))


MISTAKES = {
    "a position too late": ("state space", lambda x: {"x": np.roll(x["x"], 1, 1)}),
    "a decay of the position before": ("state space", lambda x: {"l": np.roll(x["l"], 1, 1)}),
    "no decay": ("gated", lambda x: {"l": 0 * x["l"]}),
    "a lost term": ("linear attention", lambda x: {"v": without(x["v"], 1)}),
    "a lost point of the state": ("gated", lambda x: {"k": without(x["k"], 2)}),
    "a decay by a hundredth too great": ("retention", lambda x: {"g": x["g"] * 1.01}),
}


def without(x, axis):
    found = x.copy()
    np.moveaxis(found, axis, 0)[3] = 0
    return found


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_not_allowed(mistake):
    name, change = MISTAKES[mistake]
    made = made_of(name, t=300, s=300)
    inputs = scaled(draw(made, 0), 0.01)
    wrong = evaluate(made, inputs | change(inputs))["y"]
    low, high = allowed(made, inputs)["y"]
    assert agrees(evaluate(made, inputs)["y"], low, high).all()
    assert agrees(wrong, low, high).mean() < 0.3


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("name", ["state space", "behind", "before, with maps", "gated"])
def test_what_is_not_finite_counts_from_its_position_on(name, value):
    made = made_of(name, t=90, s=90)
    inputs = draw(made, 0)
    term = next(n for n in ("x", "v") if n in inputs)
    inputs[term][1, 50, 3] = value
    low, high = allowed(made, inputs)["y"]
    known = np.isfinite(low) & np.isfinite(high)
    after = np.arange(90) <= 50 if name == "behind" else np.arange(90) >= 50
    if name in ("behind", "before, with maps"):
        after[50] = False
    assert not known[1, after, 3].any()
    known[1, after, 3] = True
    assert known.all()


def test_positions_that_are_chosen_take_pairs():
    made = made_of("state space")
    inputs = draw(made, 0)
    few = allowed(made, inputs, Rows({"t": np.array([3, 44])}))["y"]
    for part, whole in zip(few, allowed(made, inputs)["y"], strict=True):
        np.testing.assert_allclose(part, whole[:, [3, 44]], rtol=1e-2, atol=1e-2)


def test_integers_and_halves_take_pairs():
    for kind in ("int32", "bfloat16", "float16"):
        kinds = "".join(f"{name}: {kind}\n" for name in "qkv")
        made = program(kinds + TEXTS["linear attention"], **extents_of("linear attention"))
        assert carried_linearly(made) is None


@pytest.mark.parametrize("name", TEXTS)
def test_points_are_at_most_linear_in_positions(name):
    few, many = (made_of(name, t=n, s=n) for n in (1 << 10, 1 << 14))
    view = carried_linearly(few)
    assert points_of_state(view, many.extent) <= 16 * points_of_state(view, few.extent)
