"""Factors of a row are multiplied before its scores are."""

import pytest

from tilewright.spaces.derivation.chained.grouping import with_row_factors
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.language import program


def element(score: str) -> str:
    """What the maximum of a chain is of, whose scores these are of the sums p."""
    text = "p[i,j] = sum[d](x[i,d] * u[j,d])\n"
    text += f"y[i,e] = sum[j](softmax[j]({score}) * v[j,e])"
    found = chained_of(program(text, i=8, j=8, d=4, e=4))
    assert isinstance(found, Chained), found
    return str(with_row_factors(found).scalars[0].element)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("p[i,j] * a[i] * b[i]", "a[i] * b[i] * p[i, j]"),
        ("p[i,j] * a[i] * b[j] * c[i]", "a[i] * c[i] * (p[i, j] * b[j])"),
        ("p[i,j] * a[i] * 0.5 * b[i] + t[j]", "0.5 * (a[i] * b[i] * p[i, j]) + t[j]"),
        ("p[i,j] * a[i] * 0.5", "p[i, j] * a[i] * 0.5"),
        ("tanh(p[i,j] * a[i] * b[i])", "tanh(a[i] * b[i] * p[i, j])"),
    ],
)
def test_factors_of_a_row_come_first(score, expected):
    assert element(score) == expected
