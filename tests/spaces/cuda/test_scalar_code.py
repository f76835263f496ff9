"""Expressions as CUDA C++: whole numbers are computed in integers, all else in one type."""

import pytest

from tilewright.spaces.cuda.scalar_code import ScalarCode, Value, literal
from tilewright.spaces.language import program
from tilewright.spaces.language.tree import AxisValue, Expression, Number, Read


def known(node: Expression) -> Value | None:
    """Axes and whole constants are integers, what is read is not."""
    match node:
        case AxisValue(name):
            return Value(name, whole=True)
        case Number(value) if value.is_integer():
            return Value(str(int(value)), whole=True)
        case Read(name):
            return Value(name)
    return None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x[i] + 2 * i", "x + (float)(2 * i)"),
        ("x[i] * 2", "x * 2.0f"),
        ("x[i] / 0.5 - (1 - x[i])", "x / 0.5f - (1.0f - x)"),
        ("(i - 3) * (i + 1) + x[i]", "(float)((i - 3) * (i + 1)) + x"),
        ("i / 2 * x[i]", "(float)i / 2.0f * x"),
        ("i // 2 % 3 + x[i]", "(float)tw_remainder(tw_quotient(i, 2), 3) + x"),
        ("-i - -x[i]", "(float)-i - -x"),
        ("select(i < 3, 1, x[i])", "(i < 3 ? 1.0f : x)"),
        ("select(x[i] < i, i, 0) + x[i]", "(float)(x < (float)i ? i : 0) + x"),
        ("exp(i) + max(x[i], 0)", "tw_exp((float)i) + tw_max(x, 0.0f)"),
    ],
)
def test_text(text: str, code: str) -> None:
    (stage,) = program(f"x: float32[i]; y[i] = {text}", i=8).stages
    assert str(stage.body.fold(ScalarCode(), known)) == code
    doubles = code.replace("f", "").replace("(loat)", "(double)")
    assert str(stage.body.fold(ScalarCode(real="double"), known)) == doubles


def test_what_no_one_knows_is_refused() -> None:
    (stage,) = program("x: float32[i]; y[i] = x[i] + i", i=8).stages
    with pytest.raises(TypeError, match="entry of x is not known"):
        stage.body.fold(ScalarCode(), lambda node: known(node) if node == AxisValue("i") else None)


@pytest.mark.parametrize(
    ("value", "real", "text"),
    [
        (0.1, "float", "0.1f"),
        (0.1, "double", "0.1"),
        (float("inf"), "float", "tw::bits_float(0x7f800000u)"),
        (float("-inf"), "double", "-tw::bits_float(0x7f800000u)"),
    ],
)
def test_a_literal_has_its_type_and_infinities_have_theirs(value, real, text) -> None:
    assert literal(value, real) == text
