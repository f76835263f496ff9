"""Requirements of kernels over ranges on a program, on all targets."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.spaces.derivation.ragged.view import RaggedView, RowOutput
from tilewright.spaces.language.tree import AxisValue, Binary, Expression

STARTS = ("int32", "int64")
"""The types of arrays of rows' starts, and of places of entries."""


def why_no_array(view: RaggedView, floats: Collection[str], tables: Collection[str]) -> str | None:
    """Say why an array's type, or a value made of axes, is not served by kernels that read and
    write ``floats`` and look up ``tables``; None if all are."""
    program = view.program
    for name, allowed in (
        *((table, tables) for table in _tables(view)),
        *(((view.range.table, STARTS),) if view.range.pointers and view.has_rows else ()),
        *((read.name, floats) for read in view.places if read.name in program.operand),
        *((output.output.name, _written(view, output, floats)) for output in view.outputs),
    ):
        array = program.operand.get(name) or next(o for o in program.outputs if o.name == name)
        if array.dtype not in allowed:
            return f"{name} is {array.dtype}; allowed: {', '.join(allowed)}"
    for expression in (*(s.body for s in view.steps), *(o.value for o in view.outputs)):
        if found := _whole(expression):
            return f"{found} is a number made of axes; values of axes do not count"
    return None


def _written(view: RaggedView, output: RowOutput, floats: Collection[str]) -> Collection[str]:
    return STARTS if view.step[output.after].finds_places else floats


def _tables(view: RaggedView) -> list[str]:
    return [entry.table for place in view.places.values() for entry in place.entries]


def _whole(expression: Expression) -> Expression | None:
    """Return a part of an expression that is a whole number; None if there is none."""
    for node in expression.values():
        whole = isinstance(node, Binary) and node.operator in ("//", "%")
        if whole or isinstance(node, AxisValue):
            return node
    return None
