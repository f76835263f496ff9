"""Fields of a foreign JSON object: what is taken, and what is said of what is not."""

from __future__ import annotations

import math

import pytest

from tilewright.measure.records.fields import Fields
from tilewright.spaces.errors import InputError


@pytest.mark.parametrize(
    ("kind", "arguments", "value", "taken"),
    [
        ("choice", (("a", "b"),), "b", "b"),
        ("flag", (), False, False),
        ("integer", (), -7, -7),
        ("number", (), 3, 3.0),
        ("optional", (), -1.5, -1.5),
        ("optional", (0.0,), 1e-9, 1e-9),
        ("optional", (0.0,), None, None),
        ("numbers", (), [1, 2.5], (1.0, 2.5)),
        ("numbers", (0.0,), [0, 2.5], (0.0, 2.5)),
        ("number", (0.0,), 0, 0.0),
        ("mapping", (), {"a": 1}, {"a": 1}),
    ],
)
def test_what_is_allowed_is_taken(kind, arguments, value, taken) -> None:
    fields = Fields({"name": value})
    assert getattr(fields, kind)("name", *arguments) == taken
    fields.finish()


@pytest.mark.parametrize(
    ("kind", "arguments", "value", "said"),
    [
        ("choice", (("a", "b"),), "c", "name='c' is not allowed; allowed: a, b"),
        ("flag", (), 1, "name=1 is not allowed; allowed: true, false"),
        ("integer", (), 1.5, "name=1.5 is not allowed; allowed: a whole number of 64 bits"),
        ("integer", (), True, "name=True is not allowed; allowed: a whole number of 64 bits"),
        ("number", (), "1", "name='1' is not allowed; allowed: a number"),
        ("optional", (), math.inf, "name=inf is not allowed; allowed: a number, or null"),
        ("optional", (0.0,), 0.0, "name=0.0 is not allowed; allowed: a number above 0, or null"),
        ("numbers", (), [1, "2"], "name=[1, '2'] is not allowed; allowed: a list of numbers"),
        (
            "numbers",
            (0.0,),
            [-1],
            "name=[-1] is not allowed; allowed: a list of numbers from 0",
        ),
        ("number", (0.0,), -1e-9, "name=-1e-09 is not allowed; allowed: a number from 0"),
        ("mapping", (), [], "name=[] is not allowed; allowed: an object"),
    ],
)
def test_anything_else_is_refused_with_its_name_and_what_is_allowed(
    kind, arguments, value, said
) -> None:
    with pytest.raises(InputError) as refused:
        getattr(Fields({"name": value}), kind)("name", *arguments)
    assert str(refused.value) == said


def test_fields_that_are_missing_or_left_over_are_named() -> None:
    with pytest.raises(InputError, match="field 'name' is missing"):
        Fields({}).text("name")
    with pytest.raises(InputError, match="field 'more' is unknown"):
        Fields({"more": 1}).finish()
