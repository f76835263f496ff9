"""What multiplies all scores belongs to the left operand."""

import pytest

from tilewright.spaces.derivation.algebra import ONE, constant
from tilewright.spaces.derivation.chained.scaling import with_scaled_scores
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.language import program


def chained(score: str) -> Chained:
    """A chain of ``score`` over the sums p, its numbers moved."""
    text = f"p[i,j] = sum[d](x[i,d] * u[d,j])\ns[i,j] = {score}\n"
    text += "y[i,e] = sum[j](softmax[j](s[i,j]) * v[j,e])"
    found = chained_of(program(text, i=8, j=8, d=4, e=4))
    assert isinstance(found, Chained), found
    return with_scaled_scores(found)


@pytest.mark.parametrize(
    ("score", "factor"),
    [
        ("p[i,j] * 0.125", 0.125),
        ("p[i,j] * 0.125 + b[j]", 0.125),
        ("3 * tanh(p[i,j] / 4)", 0.25),
        ("3 * tanh(p[i,j] * 0.5 / 4)", 0.125),
        ("-0.5 * p[i,j]", -0.5),
    ],
)
def test_a_number_of_all_uses_is_the_factor(score, factor):
    found = chained(score)
    assert constant(found.factor) == factor
    bodies = [*(r.element for r in found.scalars), *(w.weight for w in found.weighings)]
    assert all(f"{factor}" not in str(body) for body in bodies)
    assert any(found.score in body.reads for body in bodies)


@pytest.mark.parametrize(
    "score", ["p[i,j]", "p[i,j] * 2 + p[i,j] * 3", "p[i,j] * 2 + p[i,j]", "p[i,j] * 3e6"]
)
def test_other_scores_stay_as_they_are(score):
    assert chained(score).factor == ONE


def test_zero_is_no_factor():
    """Scores without a left operand would be no product."""
    assert chained("p[i,j] * 0 + b[j]").factor == ONE
