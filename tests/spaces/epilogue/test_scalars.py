"""A name alone is a forgotten index; who wants a scalar says so."""

from __future__ import annotations

import pytest

from tilewright.measure.records.record import record_from_json
from tilewright.measure.testing.made_up import attempt, measured
from tilewright.spaces.epilogue.expression import parse
from tilewright.spaces.errors import InputError
from tilewright.spaces.named import operator
from tilewright.spaces.operators import as_workload, workload, workload_from_json

SIZES = {"m": 4, "n": 5, "k": 6}
CONVOLUTION = {"n": 1, "c": 4, "h": 6, "w": 6, "o": 8, "r": 3, "s": 3}


@pytest.mark.parametrize(
    ("name", "sizes", "axis"),
    [
        ("matmul", SIZES, "n"),
        ("bmm", {"batch": 2, **SIZES}, "n"),
        ("grouped_matmul", {"t": 8, "n": 5, "k": 6, "experts": 2}, "n"),
        ("conv2d", CONVOLUTION, "o"),
        ("conv1d", {"n": 1, "c": 4, "w": 9, "o": 8, "r": 3}, "o"),
    ],
)
@pytest.mark.parametrize(
    "epilogue",
    ["relu(x + bias)", "x + bias", "bias", "select(x > bias, x, bias)", "gelu( x+bias )*2"],
)
def test_a_name_alone_is_refused_with_the_nearest_spelling(name, sizes, axis, epilogue) -> None:
    written = epilogue if "x" in epilogue else f"x * {epilogue}"
    told = f"'bias' has no index; write bias[{axis}] for one value for each {axis}, or bias[] for a"
    for ask in (workload, operator):
        with pytest.raises(InputError) as refused:
            ask(name, **sizes, epilogue=written)
        assert told in str(refused.value)
    made = workload(name, **sizes, epilogue=written.replace("bias", "bias[]"))
    (scalar,) = (operand for operand in made.inputs if operand.name == "bias")
    assert scalar.shape == ()
    made = workload(name, **sizes, epilogue=written.replace("bias", f"bias[{axis}]"))
    (vector,) = (operand for operand in made.inputs if operand.name == "bias")
    assert vector.shape == (sizes[axis],)


def test_a_text_with_a_scalar_reads_back() -> None:
    for name, sizes in (("matmul", SIZES), ("conv2d", CONVOLUTION)):
        made = workload(name, **sizes, epilogue="relu(x * scale[ ] + shift[]) * scale[]")
        assert as_workload(str(made)) == made
        assert workload_from_json(made.to_json()) == made


def test_what_was_recorded_before_is_the_same_workload() -> None:
    made = workload("matmul", **SIZES, epilogue="relu(x + bias[n]) * scale[]")
    assert made.to_json()["parameters"]["epilogue"] == "relu(x + bias[n]) * scale"
    data = attempt(measured(1, 1.0), made).to_json()
    assert record_from_json(data).workload == made
    data["workload"]["parameters"]["epilogue"] = "relu(x + bias[n]) * scale[]"
    assert record_from_json(data).workload.key == made.key


@pytest.mark.parametrize(
    ("epilogue", "says"),
    [
        ("x[] + 1", "unexpected|brackets without an axis"),
        ("gelu[](x)", "brackets without an axis"),
        ("x + scale[] + scale[n]", "is indexed as"),
        ("x + n[]", "'n' is an axis"),
        ("x + 2[]", "brackets without an axis"),
    ],
)
def test_brackets_around_nothing_are_for_operands(epilogue: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        workload("matmul", **SIZES, epilogue=epilogue)


def test_both_spellings_are_one_epilogue() -> None:
    assert parse("relu(x * scale[]) + bias[n]") == parse("relu(x * scale) + bias[n]")
    assert parse("relu(x * scale) + bias[n]").asked == "relu(x * scale[]) + bias[n]"
