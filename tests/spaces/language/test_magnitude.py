"""Bounds on whole numbers, against their values, and programs that go beyond 64 bits."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate, evaluate_stages
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.language.magnitude import magnitudes

ATOMS = ["i", "j", "t[i]", "n[j]", "3", "100003", "2147483649"]
FORMS = ["({} + {})", "({} - {})", "max({}, {})", "select(i < j, {}, {})"]
DIVIDED = ["({} // 7)", "({} % 100003)", "(100003 * {})", "-({})", "abs({})"]
numbers = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds(str.format, st.sampled_from(FORMS), inner, inner),
        st.builds(str.format, st.sampled_from(DIVIDED), inner),
    ),
    max_leaves=5,
)


def read(text: str):
    """A program of 5 and 4 points whose only stage is a number, and its inputs at their limits."""
    tables = {"t[": "t: int32[5](index < 2147483647)\n", "n[": "n: int8[4]\n"}
    declared = "".join(line for name, line in tables.items() if name in text)
    made = program(f"{declared}y[i,j] = {text} + i * 0 + j * 0", i=5, j=4)
    inputs = draw(made, 0)
    if "n" in inputs:
        inputs["n"][:2] = -128, 127
    return made, inputs


@given(numbers)
def test_no_whole_number_is_larger_than_its_bound(text) -> None:
    try:
        made, inputs = read(text)
    except InputError as reason:
        assume("allowed: whole numbers up to 2**60" not in str(reason))
        raise
    body = made.stages[0].body
    largest = np.abs(evaluate_stages(made, inputs)["y"]).max()
    assert largest <= magnitudes(made).of(body) <= magnitudes(made).reach(body)


@pytest.mark.parametrize(
    "text",
    [
        "y[i,j] = select(i * 1000000 * (j * 1000000000) * 1000000 < 5, 1, 0) + j",
        "y[i,j] = x[(i * 9007199254740992 + j) // 9007199254740992, j % 1]",
        "t: int32[5](index < 2147483647); y[i,j] = t[i] * t[i] * 5 // 3 + j",
    ],
)
def test_whole_numbers_beyond_64_bits_are_refused(text) -> None:
    with pytest.raises(
        InputError, match=r"may be as large as .*allowed: whole numbers up to 2\*\*"
    ):
        program(text, i=2**10, j=2**10) if "t:" not in text else program(text, i=5, j=5)


def test_whole_constants_that_float64_does_not_have_are_refused() -> None:
    with pytest.raises(InputError, match="9007199254740993 is no float64"):
        program("y[i] = select(i < 9007199254740993, x[i], 0)", i=4)
    made = program("y[i] = select(i + 9007199254740991 < 9007199254740992, x[i], 0)", i=4)
    values = np.arange(1, 5, dtype=np.float32)
    assert evaluate(made, {"x": values})["y"].tolist() == [1, 0, 0, 0]


def test_a_number_that_is_no_integer_stays_one_of_floating_point() -> None:
    made = program("y[i] = select(i < 2, 1e30, 0)", i=4)
    assert made.outputs[0].dtype == "float32"
    assert evaluate(made, {})["y"].tolist() == [1e30, 1e30, 0, 0]
