"""Text that is no epilogue is refused with a reason, and does nothing."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.spaces.epilogue.expression import parse
from tilewright.spaces.errors import InputError

MANY = " + ".join(["x", *(f"({' + '.join(f'{a}{i}' for i in range(11))})" for a in "abcdef")])
REJECTED = [
    ("", "malformed"),
    ("x +", "malformed"),
    ("x)(x", "malformed"),
    ("x; x", "unexpected character ';'"),
    ("'x'", 'unexpected character "\'"'),
    ("x # y", "unexpected character '#'"),
    ("é + x", "unexpected character"),
    ("x\x00", "unexpected character"),
    ("lambda: x", "not part of the language"),
    ("gelu(x=x)", "not part of the language"),
    ("x == 1", "a comparison is the condition of"),
    ("a[m:n] + x", "not part of the language"),
    ("lambda x", "malformed"),
    ("0007 + x", "malformed"),
    ("x.real", "'x.real' is not part of the language"),
    ("x.__class__", "not part of the language"),
    ("[x for x in y]", "not part of the language"),
    ("(x for x in y)", "not part of the language"),
    ("x if x else x", "not part of the language"),
    ("x and x", "not part of the language"),
    ("not x", "not part of the language"),
    ("await x", "not part of the language"),
    ("+x", "not part of the language"),
    ("x ** 2", "not part of the language"),
    ("x // 2", "'x // 2' is not part of an epilogue"),
    ("x, x", "malformed; allowed: one expression, not 2"),
    ("x(1)", "unknown function 'x'"),
    ("x()()", "not part of the language"),
    ("1j * x", "not part of the language"),
    ("True * x", "not part of the language"),
    ("None", "not part of the language"),
    ("(x)[m]", "'x' is the accumulator"),
    ("x[m]", "'x' is the accumulator"),
    ("a[m][n] + x", "not part of the language"),
    ("__import__(x)", "unknown function '__import__'"),
    ("x + __import__", "bad operand name '__import__'"),
    ("x + _a", "bad operand name '_a'"),
    (f"x + {'a' * 33}", "bad operand name"),
    ("eval(x)", "unknown function 'eval'"),
    ("relu6(x)", "unknown function 'relu6'"),
    ("gelu(x, x)", "gelu with 2 arguments; allowed: 1"),
    ("max(x)", "max with 1 arguments; allowed: 2"),
    ("exp()", "exp with 0 arguments; allowed: 1"),
    ("min(*x, x)", "not part of the language"),
    ("x + gelu", "'gelu' is a function"),
    ("x + m", "'m' is an axis"),
    ("x + n[m]", "'n' is an axis"),
    ("x + a[k]", "index 'k' is no axis; allowed: m, n"),
    ("x + a[m+1]", "index 'm + 1' is no axis"),
    ("x + a[0]", "index '0' is no axis"),
    ("x + a[m,m]", "an axis of a[m,m] is repeated"),
    ("x + a[m] * a[n]", "'a' is indexed as a[m] and a[n]"),
    ("x + a[m,n] * a[n,m]", "'a' is indexed as a[m,n] and a[n,m]"),
    ("x + a * a[n]", "'a' is indexed as a and a[n]"),
    ("y + 1", "the accumulator 'x' is never used"),
    ("2", "the accumulator 'x' is never used"),
    ("x + 1e999", "a number is out of range"),
    ("x + 1e39", "a number is out of range"),
    (f"x + {'9' * 900}", "a number is out of range"),
    ("x" + " + x" * 400, "the epilogue has 1601 characters; allowed: 1000"),
    ("-" * 900 + "x", "too deeply nested"),
    ("+".join("x" * 60), "too deeply nested"),
    ("(" * 400 + "x" + ")" * 400, "malformed"),
    ("exp(" * 150 + "x" + ")" * 150, "too deeply nested"),
    ("x" + ".a" * 490, "not part of the language"),
    (MANY, "66 operands; allowed: 64"),
    ("x + 1if x", "character 6: a number that ends in 'i'"),
    ("x + \u03c0", "character 5: unexpected character"),
    ("x" + "(x)" * 300, "not part of the language"),
    ("x + log3(x)", "unknown function 'log3'"),
    ("x + isnan(x)", "isnan(...) is a condition"),
    ("x < 0", "a comparison is the condition of select or where"),
    ("select(x, x, 0)", "'x' is no condition"),
    ("select(m < 2, x, 0)", "'m' is an axis"),
    ("inside(a[m], 0) + x", "unknown function 'inside'"),
    ("x * size(m)", "unknown function 'size'"),
    ("x + sum[n](a[n])", "reduces"),
    ("x + a[m // 2]", "index 'm // 2' is no axis"),
]


@pytest.mark.parametrize(("text", "reason"), REJECTED)
def test_anything_else_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        (MANY.replace("f9 + f10", "1"), MANY),
        ("abs(" * 31 + "x" + ")" * 31, "abs(" * 32 + "x" + ")" * 32),
        ("-" * 31 + "x", "-" * 32 + "x"),
        ("+".join("x" * 32), "+".join("x" * 33)),
        (f"x + {np.finfo(np.float32).max:.0f}", "x + 3.5e38"),
        ("x" + " + 1" * 20 + " " * 919, "x" + " + 1" * 20 + " " * 920),
    ],
)
def test_limits_are_where_they_are_said_to_be(allowed: str, refused: str) -> None:
    parse(allowed)
    with pytest.raises(InputError):
        parse(refused)


@pytest.mark.parametrize("value", [None, 1, b"x", ["x"]])
def test_only_text_is_parsed(value: object) -> None:
    with pytest.raises(InputError):
        parse(value)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="x+-*/()[],mn 1.e_aglu", max_size=40))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    try:
        expression = parse(text)
    except InputError:
        return
    assert parse(str(expression)) == expression


def test_parsing_loads_no_heavy_package() -> None:
    program = (
        "import sys; from tilewright.spaces.epilogue.expression import parse; "
        "str(parse('gelu(bfloat16(x))'));"
        "assert not {'scipy', 'ml_dtypes', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_message_says_where() -> None:
    with pytest.raises(InputError, match=r"'x \+ foo\(x\)', character 5: unknown function 'foo'"):
        parse("x + foo(x)")
