"""Functions and conditions that are spelt out as they are read, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate

X = np.array([-2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 3e38, np.inf, -np.inf, np.nan], "f4")
FUNCTIONS = {
    "ceil(x[i])": np.ceil,
    "trunc(x[i])": np.trunc,
    "sign(x[i])": lambda x: np.nan_to_num(np.sign(x)),
    "square(x[i])": np.square,
    "reciprocal(x[i])": np.reciprocal,
    "tan(x[i])": np.tan,
    "log2(x[i])": np.log2,
    "log10(x[i])": np.log10,
    "pow(x[i], 3)": lambda x: x**3,
    "pow(x[i], 1)": lambda x: x,
    "pow(x[i], -2)": lambda x: x**-2.0,
    "pow(x[i], 0)": lambda x: x**0,
    "pow(2, x[i])": np.exp2,
    "round(x[i])": np.rint,
    "fmod(x[i], 2)": lambda x: np.fmod(x, 2),
    "select(isnan(x[i]), 1, 0)": np.isnan,
    "select(isinf(x[i]), 1, 0)": np.isinf,
    "select(isfinite(x[i]), 1, 0)": np.isfinite,
    "select(not isnan(x[i]) and x[i] > 0, 1, 0)": lambda x: x > 0,
    "select(isnan(x[i]) or isinf(x[i]), 1, 0)": lambda x: ~np.isfinite(x),
}


@pytest.mark.parametrize("text", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_means_what_numpy_gives(text, dtype):
    made = program(f"y[i] = {text}", i=X.size, dtype=dtype)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[text](X.astype(np.float64)).astype(np.float64)
    np.testing.assert_allclose(evaluate(made, {"x": X.astype(dtype)})["y"], expected, 1e-12)


def test_a_program_that_spells_them_itself_is_the_same_program():
    short = program("y[i] = ceil(x[i]) + pow(x[i], 2) + select(isnan(x[i]), 0, log2(x[i]))", i=4)
    text = "y[i] = -floor(-x[i]) + x[i] * x[i] + select(x[i] != x[i], 0, log(x[i]) / log(2))"
    assert short.digest == program(text, i=4).digest
    assert program(str(short)) == short


@pytest.mark.parametrize("text", ["square(X)", "select(isnan(X), 0, 1)", "pow(X, 3) * trunc(X)"])
def test_a_long_argument_is_not_repeated_for_ever(text):
    for _ in range(20):
        text = text.replace("X", f"({text})") if len(text) < 4000 else text
    with pytest.raises(InputError) as raised:
        program(f"y[i] = {text.replace('X', 'x[i]')}", i=4)
    assert len(str(raised.value)) <= 200


def test_a_condition_bounds_a_reduction():
    made = program("where isfinite(x[i])\ny = sum[i](x[i])", i=4)
    found = evaluate(made, {"x": np.array([1, np.inf, 2, np.nan], "f4")})
    assert found["y"] == 3
