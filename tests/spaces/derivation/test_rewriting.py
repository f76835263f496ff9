"""Programs in another form compute what they computed in the first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tests.spaces.language.strategies import programs
from tilewright.spaces.derivation.rewriting import rewritten
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw

BOUNDED = {
    "a sum": "where k <= j; y[i,j] = sum[k](x[i,k])",
    "a product": "where k <= j; y[i,j] = prod[k](x[i,k])",
    "a mean": "where k <= j; y[i,j] = mean[k](x[i,k])",
    "two conditions": "where k <= j and k > j - 2; y[i,j] = sum[k](x[i,k] * z[k])",
    "beyond the border": "x: float32[4,6]; where j + 2*k < 6; y[i,j] = sum[k](x[i,j + 2*k])",
    "by lengths": "n: int32[i](index < 7); where k < n[i]; y[i] = sum[k](x[i,k])",
}
KEPT = {
    "a maximum": "where k <= j; y[i,j] = max[k](x[i,k])",
    "attention's": "where k <= j; y[j,i] = sum[k](softmax[k](x[j,k]) * v[k,i])",
    "nothing": "y[i] = sum[j](x[i,j])",
}


def read(text: str) -> Program:
    return program(text, **{axis: n for axis, n in (("i", 4), ("j", 5), ("k", 6)) if axis in text})


def agree(made: Program, other: Program, seed: int = 0) -> None:
    """Both give the same outputs; and each text reads back."""
    assert program(str(other)) == other
    inputs = draw(made, seed)
    with np.errstate(all="ignore"):
        expected, found = evaluate(made, inputs), evaluate(other, inputs)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BOUNDED)
def test_sums_lose_their_conditions(name):
    made = read(BOUNDED[name])
    other = rewritten(made)
    assert other is not None
    assert other.conditions == ()
    agree(made, other)


@pytest.mark.parametrize("name", KEPT)
def test_what_has_no_number_to_hide_by_stays(name):
    other = rewritten(read(KEPT[name]))
    assert other is None or other.conditions


def test_what_is_hidden_cannot_be_seen():
    made = read(BOUNDED["by lengths"])
    other = rewritten(made)
    assert other is not None
    inputs = draw(made, 3)
    hidden = np.arange(6) >= inputs["n"][:, None]
    inputs["x"] = np.where(hidden, np.nan, inputs["x"])
    np.testing.assert_allclose(evaluate(other, inputs)["y"], evaluate(made, inputs)["y"])
    assert np.isfinite(evaluate(other, inputs)["y"]).all()


def test_counts_become_numbers():
    made = read("m[i] = mean[j](x[i,j]); y = max[i](m[i])")
    other = rewritten(made)
    assert other is not None
    assert [str(stage) for stage in other.stages] == [
        "m_sum[i] = sum[j](x[i, j])",
        "m[i] = m_sum[i] / 5",
        "y = max[i](m[i])",
    ]
    agree(made, other)


def test_a_count_that_is_an_output_stays():
    assert rewritten(read("y = sum[j](1)")) is None


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_stay_what_they_are(drawn):
    text, extents = drawn
    try:
        made = program(text, **extents)
    except InputError:
        return
    other = rewritten(made)
    if other is not None:
        agree(made, other)
