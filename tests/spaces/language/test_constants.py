"""Constants in texts: elements in braces, which are rounded and written back."""

from __future__ import annotations

import re

import pytest

from tests.spaces.constant_programs import PROGRAMS, with_constant
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program

BODY = "y[i] = sum[j](C[i, j] * x[j])"


def constant(elements: str, kind: str = "float32[2, 3]") -> str:
    return f"axes i=2, j=3; C: {kind} = {elements}; {BODY}"


@pytest.mark.parametrize(
    "elements",
    ["{1, 0, -2.5, 1e3, 0.5, -0}", "{{1, 0, -2.5}, {1000, .5, 0}}", "{{1,0,-2.5},\n {1000,.5,0}}"],
)
def test_elements_stand_in_one_pair_of_braces_or_one_for_each_row(elements: str) -> None:
    made = program(constant(elements))
    assert made.operand["C"].elements == (1, 0, -2.5, 1000, 0.5, 0)
    assert "C: float32[2, 3] = {{1, 0, -2.5}, {1000, 0.5, 0}}" in made.text


def test_elements_are_rounded_to_the_dtype() -> None:
    ours = {
        kind: program(constant("{0.1, 1, 1, 1, 1, 16777217}", f"{kind}[2, 3]")).operand["C"]
        for kind in ("float64", "float32", "bfloat16")
    }
    assert [o.elements[0] for o in ours.values()] == [0.1, 0.1, 0.10009765625]
    assert [o.elements[-1] for o in ours.values()] == [16777217, 16777216, 16777216]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_program_with_constants_reads_back(name: str) -> None:
    made = program(with_constant(PROGRAMS[name]))
    assert program(made.text) == made
    assert made.digest == program(made.text).digest
    assert made.digest != program(with_constant(PROGRAMS[name], seed=9)).digest


BAD = {
    "{1, 2, 3}": "3 elements in braces; allowed: 6 for the shape [2, 3], such as C: float32[2, 2]",
    "{{1, 2}, {3, 4}, {5, 6}}": "3 elements in braces; allowed: 2 for the shape [2, 3]",
    "{{1, 2, 3}, 4}": "no elements in braces; allowed: 3 for the shape [2, 3]",
    "{{1, 2, 3}, {4, 5, {6}}}": "is no element; allowed: finite numbers",
    "{}": "no elements in braces; allowed: 2 for",
    "5": "no elements in braces; allowed: 2 for",
    "{1, 2, 3, 4, 5, inf}": "'inf' is no element; allowed: finite numbers",
    "{1, 2, 3, 4, 5, 1e999}": "the constant C holds inf; allowed: finite float32",
    "{1, 2, 3, 4, 5, 1e39}": "the constant C holds 1e+39; allowed: finite float32",
    "{1, 2, 3, 4, 5, -x}": "'-x' is no element",
    "{1, 2, 3, 4, 5, True}": "'True' is no element",
    "{1, 2, 3, 4, 5, 1" + "0" * 400 + "}": "is no element; allowed: finite numbers",
}


@pytest.mark.parametrize("elements", BAD)
def test_bad_elements_are_refused_in_one_line(elements: str) -> None:
    with pytest.raises(InputError, match=re.escape(BAD[elements])) as refused:
        program(constant(elements))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (constant("{1}", "int32[1, 1]"), "the constant C is int32; allowed: float64, float32, "),
        (constant("{1}", "float32"), "a constant has a shape, and nothing else; allowed: C: "),
        (constant("{1}", "float32[2, 3](order=(1, 0))"), "a constant has a shape, and nothing"),
        ("axes i=2; y: float32[2] = {1, 2}; y[i] = x[i]", "only operands are constants"),
        ("axes i=2; C: float32[2] = {1, 2}; y[i] = x[i]", "'C' is declared, and never read"),
        ("axes i=2; y[i] = {x[i]}", "write a constant, such as C: float32[2] = {1, 2}"),
        ("axes i=2; C: float32[2] = {1, 2", "a bracket is never closed"),
    ],
)
def test_constants_in_wrong_places_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        program(text)
