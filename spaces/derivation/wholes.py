"""Whole numbers that are computed in floats: how large they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spaces.dtypes import EXACT
from spaces.language.kinds import is_whole
from spaces.language.program import Program
from spaces.language.tree import AxisValue, Binary, Expression, Number, Read, Select


def why_inexact(program: Program, expressions: Iterable[Expression]) -> str | None:
    """Which operation on axes, entries of tables and whole constants goes beyond what float32 tells
    apart, in words; None if none does. A constant by itself may be any."""
    limits = limits_of(program)
    for node in (part for expression in expressions for part in expression.values()):
        whole = isinstance(node, Binary) and is_whole(node, limits.keys())
        if whole and largest(node, limits) > EXACT:
            return f"{node} goes beyond {EXACT}, where floats do not tell whole numbers apart"
    return None


def limits_of(program: Program) -> Mapping[str, int]:
    """How large axes and entries of tables become."""
    tables = {o.name: o.drawn.below for o in program.operands if o.drawn}
    return {**program.extent, **tables}


def largest(node: Expression, limits: Mapping[str, int]) -> float:
    """A bound on how far from 0 an expression of whole numbers can be."""
    match node:
        case Number(value):
            return value
        case AxisValue(name):
            return limits[name]
        case Read(name, _, outside):
            return max(limits[name], abs(outside or 0.0))
        case Binary("%", _, divisor):
            return largest(divisor, limits)
        case Binary("//", dividend, _):
            return largest(dividend, limits)
        case Binary(operator, left, right):
            a, b = largest(left, limits), largest(right, limits)
            return a * b if operator == "*" else a + b
        case Select(_, then, otherwise):
            return max(largest(then, limits), largest(otherwise, limits))
    return max((largest(child, limits) for child in node.children), default=0.0)
