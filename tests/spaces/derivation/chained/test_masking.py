"""What hides a key from a chain, and which maxima may lag behind."""

from __future__ import annotations

import pytest

from tests.spaces.chained_programs import PLAIN, SCORE, VALUE, form, made
from tilewright.spaces.derivation.chained.masking import masked_value
from tilewright.spaces.derivation.chained.reference import may_lag
from tilewright.spaces.derivation.chained.view import Chained, chained_of

SUM = "sum[d](q[b, h, i, d] * k[b, h // 2, j, d])"


def unscaled(text: str) -> Chained:
    found = chained_of(made(text))
    assert isinstance(found, Chained), found
    return found.unscaled


def hides(text: str) -> str:
    chained = unscaled(text)
    return str(masked_value(chained)).replace(str(chained.score), SUM)


@pytest.mark.parametrize(
    ("score", "hidden"),
    [
        (SCORE, SUM),
        (f"{SCORE} / 3", SUM),
        (f"{SCORE} + bias[h,i,j]", f"{SUM} * 0.2 + bias[h, i, j]"),
        (f"{SCORE} - slope[h] * (i - j)", f"{SUM} * 0.2 - slope[h] * (i - j)"),
        (f"3 * tanh({SCORE} / 3)", f"tanh({SUM} * 0.2 / 3)"),
        (f"max({SCORE}, -2)", f"max({SUM} * 0.2, -2)"),
    ],
)
def test_what_a_maximum_is_of_hides_its_key(score, hidden):
    assert hides(f"y[b,h,i,e] = sum[j](softmax[j]({score}) * {VALUE})") == hidden


def test_a_score_hides_its_key_where_a_function_of_it_vanishes():
    assert hides(f"y[b,h,i,e] = sum[j](sigmoid({SCORE}) * {VALUE})") == SUM


@pytest.mark.parametrize(
    "weight",
    [
        f"sigmoid(-{SCORE})",
        f"tanh({SCORE})",
        f"exp(-abs({SCORE}))",
        f"({SCORE} + 1)",
        f"sigmoid({SCORE} + row[i])",  # which may be infinite
    ],
)
def test_nothing_hides_a_key_where_its_weight_would_not_vanish(weight):
    assert masked_value(unscaled(f"y[b,h,i,e] = sum[j]({weight} * {VALUE})")) is None


def test_a_maximum_may_lag_where_outputs_are_the_same_for_any():
    for name in ("causal", "log of the sum", "sinks", "alibi", "gate"):
        found = chained_of(form(name))
        assert isinstance(found, Chained)
        assert len(may_lag(found.unscaled)) == 1, name


@pytest.mark.parametrize(
    "text",
    [
        f"p[b,h,i,j] = {SCORE}\nm[b,h,i] = max[j](p[b,h,i,j])\n"
        "z[b,h,i] = sum[j](exp(p[b,h,i,j] - m[b,h,i]))\n"
        f"y[b,h,i,e] = sum[j](exp(p[b,h,i,j] - m[b,h,i]) / z[b,h,i] * {VALUE})\n-> y, m",
        f"p[b,h,i,j] = {SCORE}\nm[b,h,i] = max[j](p[b,h,i,j])\n"
        f"y[b,h,i,e] = sum[j](exp(p[b,h,i,j] - m[b,h,i]) * {VALUE})",
    ],
    ids=["an output", "weights that nothing divides"],
)
def test_a_maximum_that_comes_out_may_not(text):
    assert not may_lag(unscaled(text))


def test_the_plain_form_is_served_by_both():
    assert hides(PLAIN) == SUM
    assert may_lag(unscaled(PLAIN))
