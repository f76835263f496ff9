"""Differences that rounding cannot make negative: of the greatest of some values and one of these.

A stage has one value, so a kernel subtracts from the greatest value the same number which it was
the greatest of. The rules of intervals do not know that. For them, the square root of ``m - x``
may be NaN where ``m`` is near ``x``, and a kernel that contracts the subtraction would be right.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import AxisValue, Binary, Call, Expression, Number, Read

ROOTS = frozenset({"sqrt", "rsqrt", "log"})
"""Functions that are NaN below zero."""


@lru_cache(maxsize=256)
def with_signs(program: Program) -> Program:
    """Return an equal program in which functions that are NaN below zero take such differences for
    zero at least."""
    stages = tuple(replace(s, body=_with_signs(program, s.body)) for s in program.stages)
    return program if stages == program.stages else replace(program, stages=stages)


def _with_signs(program: Program, node: Expression) -> Expression:
    children = tuple(_with_signs(program, child) for child in node.children)
    if isinstance(node, Call) and node.function in ROOTS and _is_positive(program, node):
        children = (Call("max", (*children, Number(0.0))),)
    return node if children == node.children else node.with_children(children)


def _is_positive(program: Program, node: Call) -> bool:
    """Tell whether a function's argument is a difference that is never negative."""
    match node.children:
        case (Binary("-", left, right),):
            return _is_best(program, left, "max", right) or _is_best(program, right, "min", left)
    return False


def _is_best(program: Program, best: Expression, reducer: str, value: Expression) -> bool:
    """Tell whether ``best`` is the greatest, or least, of all values that ``value`` is one of."""
    stage = program.stage.get(best.name) if isinstance(best, Read) else None
    return (
        stage is not None
        and (stage.reducer, stage.body) == (reducer, value)
        and best.children == tuple(map(AxisValue, stage.axes))
        and not program.bounding(stage)
    )
