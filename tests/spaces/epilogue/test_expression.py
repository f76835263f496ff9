"""Epilogues: canonical text, what they are evaluated to, and their code."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf

from tilewright.spaces.cpu.vectors.vector_code import VectorCode
from tilewright.spaces.cuda.scalar_code import ScalarCode, Value
from tilewright.spaces.epilogue.expression import FUNCTIONS as CALLED
from tilewright.spaces.epilogue.expression import Epilogue, parse
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Negation,
    Number,
    Read,
    Select,
)

OPERANDS = {"bias": ("n",), "scale": (), "row": ("m",), "r": ("m", "n"), "t": ("n", "m")}


def read(name, axes=()):
    return Read(name, tuple(map(AxisValue, axes)))


X = read("x")


def nodes(inner):
    calls = st.sampled_from(sorted(CALLED)).flatmap(
        lambda name: st.builds(Call, st.just(name), st.tuples(*[inner] * FUNCTIONS[name].arity))
    )
    binaries = st.builds(Binary, st.sampled_from("+-*/"), inner, inner)
    comparisons = st.builds(Comparison, st.sampled_from(["<", "<=", "==", "!="]), inner, inner)
    selections = st.builds(Select, comparisons, inner, inner)
    return binaries | calls | selections | st.builds(Negation, inner)


numbers = st.floats(0, 3e38, allow_subnormal=True).map(lambda v: Number(abs(v)))
references = st.sampled_from([read(*item) for item in OPERANDS.items()])
leaves = numbers | references | st.just(X)
expressions = st.recursive(leaves, nodes, max_leaves=12).filter(lambda e: X in e.walk())
epilogues = expressions.map(Epilogue)


@settings(max_examples=300, deadline=None)
@given(epilogues)
def test_canonical_text_parses_back_to_the_same_tree(expression: Epilogue) -> None:
    again = parse(str(expression))
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == str(expression)


@settings(max_examples=100, deadline=None)
@given(epilogues, st.sampled_from(["", "  ", "\t", "\n"]))
def test_white_space_does_not_change_the_text(expression: Epilogue, space: str) -> None:
    text = str(expression).replace(" ", "")
    spread = space + "".join(f"{space}{c}{space}" if c in "+*/()[]," else c for c in text) + space
    # An exponent's sign belongs to its number.
    assert str(parse(spread.replace(f"e{space}+{space}", "e+"))) == str(expression)


@settings(max_examples=100, deadline=None)
@given(epilogues)
def test_parentheses_are_minimal(expression: Epilogue) -> None:
    text = str(expression)
    for start in (
        i for i, c in enumerate(text) if c == "(" and (i == 0 or not text[i - 1].isalnum())
    ):
        depth, end = 1, start
        while depth:
            end += 1
            depth += {"(": 1, ")": -1}.get(text[end], 0)
        without = text[:start] + text[start + 1 : end] + text[end + 1 :]
        if text[start - 1] == "-" and text[start + 1] == "-":
            continue  # "--" would be a decrement in C
        assert parse(without) != expression


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" gelu( x+bias[ n ] )*scale+ residual[m,n] ", "gelu(x + bias[n]) * scale + residual[m,n]"),
        ("((x))", "x"),
        ("(x + 1) + 2", "x + 1 + 2"),
        ("x + (1 + 2)", "x + (1 + 2)"),
        ("x - (a - b)", "x - (a - b)"),
        ("(x * a) / b", "x * a / b"),
        ("x / (a * b)", "x / (a * b)"),
        ("-(x)", "-x"),
        ("--x", "-(-x)"),
        ("-(x * a)", "-(x * a)"),
        ("x * (-2)", "x * -2"),
        ("x + 1.50", "x + 1.5"),
        ("x + 1e-3", "x + 0.001"),
        ("x + 4e20", "x + 4e+20"),
        ("max((x), (0))", "max(x, 0)"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


def test_operands_come_in_order_of_first_appearance() -> None:
    expression = parse("relu(x * scale + bias[n]) + t[n,m] - bias[n]")
    assert list(expression.operands.items()) == [
        ("scale", ()),
        ("bias", ("n",)),
        ("t", ("n", "m")),
    ]
    assert expression.functions == {"relu"}
    assert parse("x + a[i]", axes=("i", "j")).operands == {"a": ("i",)}


def test_an_expression_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse("x + 1").value = X  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("x", lambda x, b, r, s: x),
        ("x + b[n]", lambda x, b, r, s: x + b),
        ("x - b[n] - r[m,n]", lambda x, b, r, s: (x - b) - r),
        ("x - (b[n] - r[m,n])", lambda x, b, r, s: x - (b - r)),
        ("x / s / b[n]", lambda x, b, r, s: (x / s) / b),
        ("-x * s + 2", lambda x, b, r, s: 2 - x * s),
        ("exp(x) + tanh(b[n])", lambda x, b, r, s: np.exp(x) + np.tanh(b)),
        ("erf(x)", lambda x, b, r, s: erf(x)),
        (
            "sigmoid(x) * silu(s * x)",
            lambda x, b, r, s: 1 / (1 + np.exp(-x)) * (s * x) / (1 + np.exp(-s * x)),
        ),
        ("relu(x + b[n])", lambda x, b, r, s: np.where(x + b > 0, x + b, 0)),
        ("gelu(x + b[n]) * s", lambda x, b, r, s: s * 0.5 * (x + b) * (1 + erf((x + b) / 2**0.5))),
        (
            "gelu_tanh(x)",
            lambda x, b, r, s: 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
        ),
        (
            "min(x, b[n]) + max(x, 0)",
            lambda x, b, r, s: np.where(x < b, x, b) + np.where(x > 0, x, 0),
        ),
        ("sqrt(abs(x)) * rsqrt(x * x)", lambda x, b, r, s: np.abs(x) ** 0.5 / np.abs(x)),
        ("float16(x)", lambda x, b, r, s: x.astype(np.float16).astype(np.float64)),
    ],
)
def test_evaluation_is_what_numpy_says(text: str, meaning) -> None:
    generator = np.random.default_rng(0)
    x, r = generator.standard_normal((2, 5, 7))
    b, s = generator.standard_normal((1, 7)), np.array([[1.5]])
    result = parse(text).evaluate(x, {"b": b, "r": r, "s": s})
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, meaning(x, b, r, s), rtol=1e-12, atol=1e-15)


def test_bfloat16_rounds_to_nearest_even() -> None:
    unit = 2.0**-7
    x = np.array([1 + unit / 2, 1 + 3 * unit / 2, 1 + unit / 2 + 2.0**-20, np.inf, -1e-50])
    rounded = parse("bfloat16(x)").evaluate(x, {})
    np.testing.assert_array_equal(rounded, [1, 1 + 2 * unit, 1 + unit, np.inf, 0])


@pytest.mark.parametrize("name", sorted(CALLED))
def test_nan_comes_out_where_nan_goes_in(name: str) -> None:
    for place in range(FUNCTIONS[name].arity):
        arguments = ["2"] * FUNCTIONS[name].arity
        arguments[place] = "x"
        assert np.isnan(parse(f"{name}({', '.join(arguments)})").evaluate(np.array(np.nan), {}))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("exp", 0, np.inf),
        ("tanh", -1, 1),
        ("erf", -1, 1),
        ("sigmoid", 0, 1),
        ("gelu", 0, np.inf),
        ("gelu_tanh", 0, np.inf),
        ("silu", 0, np.inf),
    ],
)
def test_limits(name: str, low: float, high: float) -> None:
    values = parse(f"{name}(x)").evaluate(np.array([-np.inf, np.inf]), {})
    np.testing.assert_array_equal(values, [low, high])


def test_an_epilogue_as_code() -> None:
    epilogue = parse("max(gelu(x + bias[n]), 0) * scale - -r[n,m] / 3 - (x - 0.5)")
    names = ("x", *epilogue.operands)
    vectors = epilogue.fold(VectorCode(), {name: Written(f"v_{name}") for name in names})
    assert str(vectors) == (
        "tw_max(tw_gelu(v_x + v_bias), tw_set(0.0f)) * v_scale - -v_r / tw_set(3.0f)"
        " - (v_x - tw_set(0.5f))"
    )
    elements = {name: Value(f"{name}[i]") for name in names}
    assert str(epilogue.fold(ScalarCode(), elements)) == (
        "tw_max(tw_gelu(x[i] + bias[i]), 0.0f) * scale[i] - -r[i] / 3.0f - (x[i] - 0.5f)"
    )
    doubles = parse("-(x / 3)").fold(ScalarCode(real="double", explicit=True), elements)
    assert str(doubles) == "(-(x[i] / 3.0))"
    selecting = parse("select(x < bias[n], floor(x), 0)")
    assert str(selecting.fold(VectorCode(), {"x": Written("x"), "bias": Written("b")})) == (
        "tw_select(x < b, tw_floor(x), tw_set(0.0f))"
    )
    assert str(selecting.fold(ScalarCode(), {"x": Value("x"), "bias": Value("b")})) == (
        "(x < b ? tw_floor(x) : 0.0f)"
    )


@pytest.mark.parametrize("name", ["sin", "cos", "round", "pow", "ceil", "isnan", "log", "floor"])
def test_an_operand_may_be_called_like_a_later_function(name: str) -> None:
    found = parse(f"x * {name}[m] + {name}[m]")
    assert found.operands == {name: ("m",)}
    assert parse(str(found)) == found
