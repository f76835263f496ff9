"""Find the integer values of a program: they are computed and compared exactly."""

from __future__ import annotations

from collections.abc import Set

from tilewright.spaces.dtypes import EXACT_WIDE
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

KEEPING = frozenset(name for name, function in FUNCTIONS.items() if function.whole)
"""Functions that give whole numbers of whole numbers."""


def is_integer(expression: Expression, whole: Set[str], floors: bool = False) -> bool:
    """Tell whether an expression gives integers if the arrays ``whole`` hold them. With ``floors``,
    the result of ``floor`` or ``round`` counts as an integer for any argument.
    """
    match expression:
        case Call("floor" | "round") if floors:
            return True
        case Number(value):
            return value.is_integer() and value <= EXACT_WIDE
        case AxisValue():
            return True
        case Read(name, _, outside):
            return name in whole and (outside is None or outside.is_integer())
        case Negation(inner):
            return is_integer(inner, whole, floors)
        case Binary("/", _, _):
            return False
        case Binary(_, left, right) | Select(_, left, right):
            return is_integer(left, whole, floors) and is_integer(right, whole, floors)
        case Call(function, arguments):
            return function in KEEPING and all(is_integer(a, whole, floors) for a in arguments)
    return False
