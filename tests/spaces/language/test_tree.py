"""What a tree says of itself."""

from __future__ import annotations

from tilewright.spaces.language.reading.reader import program
from tilewright.spaces.language.tree import AxisValue, Number

GATHER = "t: int32[i](index < 8)\nw: float32[8]\ny[i, j] = x[i] * w[t[i]] + j"


def test_values_leave_out_what_stands_within_an_index():
    made = program(GATHER, i=8, j=4).stages[-1].body
    assert [read.name for read in made.value_reads] == ["x", "w"]
    assert [read.name for read in made.reads] == ["x", "w", "t"]
    assert [node for node in made.values() if isinstance(node, AxisValue)] == [AxisValue("j")]


def test_axes_give_way_to_expressions_within_indices_too():
    made = program(GATHER, i=8, j=4).stages[-1].body
    moved = made.at({"i": AxisValue("r"), "j": Number(3)})
    assert str(moved) == "x[r] * w[t[r]] + 3"
