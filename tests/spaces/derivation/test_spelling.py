"""Programs that differ in the spelling of their conditions have one digest."""

import numpy as np
import pytest

from tilewright.spaces.derivation.spelling import in_one_spelling
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate

AXES = "axes i=6, j=6\nx: float32[6,6]\n"


@pytest.mark.parametrize(
    "spellings",
    [
        (
            "y[i] = sum[j: j <= i](x[i,j])",
            "y[i] = sum[j](select(j <= i, x[i,j], 0))",
            "y[i] = sum[j](select(i >= j, x[i,j], 0))",
            "y[i] = sum[j](select(j > i, 0, x[i,j]))",
            "where j <= i\ny[i] = sum[j](x[i,j])",
        ),
        (
            "y[i] = prod[j: j <= i and j > 1](x[i,j])",
            "y[i] = prod[j](select(j <= i, select(j <= 1, 1, x[i,j]), 1))",
            "y[i] = prod[j](select(j <= i and j > 1, x[i,j], 1))",
        ),
        (
            "m[i] = sum[j](select(j < i, x[i,j], 0))\n"
            "y[i] = sum[j](select(j < i, x[j,i], 0)) + m[i]",
            "m[i] = sum[j: j < i](x[i,j])\ny[i] = sum[j: j < i](x[j,i]) + m[i]",
        ),
        (
            "y[i,j] = select(j <= i, x[i,j], 0)",
            "y[i,j] = select(j > i, 0, x[i,j])",
            "y[i,j] = select(i < j, 0, x[i,j])",
        ),
        (
            "y[i,j] = select(j < i, x[i,j], x[j,i])",
            "y[i,j] = select(j >= i, x[j,i], x[i,j])",
        ),
    ],
)
def test_equal_programs_have_one_digest_and_keep_their_values(spellings: tuple[str, ...]) -> None:
    x = {"x": np.random.default_rng(0).normal(size=(6, 6))}
    made = [program(AXES + each) for each in spellings]
    spelt = [in_one_spelling(each) for each in made]
    assert len({each.digest for each in spelt}) == 1
    (first, *others) = [evaluate(each, x)["y"] for each in (*made, *spelt)]
    for values in others:
        np.testing.assert_allclose(values, first, rtol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = sum[j](select(j <= i, x[i,j], 1))",
        "y[i] = sum[j](select(x[i,j] > 0, x[i,j], 0))",
        "y[i] = sum[j](select(j <= i, x[i,j], 0) * 2)",
        "y[i] = sum[j](select(j / (i + 1) <= 0.5, x[i,j], 0))",
        "m[i] = sum[j](x[i,j])\ny[i] = sum[j](select(j <= i, x[i,j], 0)) + m[i]",
    ],
)
def test_other_selections_stay(text: str) -> None:
    """They hide no identity, or depend on values, or not all sums have them."""
    made = program(AXES + text)
    assert in_one_spelling(made).digest == made.digest
