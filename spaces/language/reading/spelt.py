"""Functions and conditions that are spelt out by others as they are read.

Programs hold none of them, so that a program that spells them itself is the same program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.language.tree import (
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Select,
)

MAX_REPEATED = 100
"""Nodes of an argument that stands several times in what its function is spelt by."""
MAX_POWER = 4
"""The largest power that is a product."""
_ZERO, _ONE = Number(0.0), Number(1.0)


@dataclass(frozen=True)
class Spelt:
    """The meaning of a call: an expression, or a comparison. ``repeats`` tells whether an argument
    stands there more than once."""

    meaning: Callable[[Expression], Any]
    repeats: bool = False


def _ceil(x: Expression) -> Expression:
    return Negation(Call("floor", (Negation(x),)))


def _trunc(x: Expression) -> Expression:
    return Select(Comparison("<", x, _ZERO), _ceil(x), Call("floor", (x,)))


def _sign(x: Expression) -> Expression:
    negative = Select(Comparison("<", x, _ZERO), Negation(_ONE), _ZERO)
    return Select(Comparison(">", x, _ZERO), _ONE, negative)


def _tan(x: Expression) -> Expression:
    return Binary("/", Call("sin", (x,)), Call("cos", (x,)))


def _logarithm(base: float) -> Callable[[Expression], Expression]:
    factor = Number(1 / math.log(base))
    return lambda x: Binary("*", factor, Call("log", (x,)))


def _size_and_more(operator: str) -> Callable[[Expression], Comparison]:
    """Compare a magnitude with one more than twice itself, which is greater if it is finite,
    zero included."""

    def compared(x: Expression) -> Comparison:
        size = Call("abs", (x,))
        return Comparison(operator, size, Binary("+", Binary("*", Number(2.0), size), _ONE))

    return compared


FUNCTIONS = {
    "ceil": Spelt(_ceil),
    "trunc": Spelt(_trunc, repeats=True),
    "sign": Spelt(_sign, repeats=True),
    "square": Spelt(lambda x: Binary("*", x, x), repeats=True),
    "reciprocal": Spelt(lambda x: Binary("/", _ONE, x)),
    "tan": Spelt(_tan, repeats=True),
    "log2": Spelt(_logarithm(2)),
    "log10": Spelt(_logarithm(10)),
}
"""Functions of one argument."""
CONDITIONS = {
    "isnan": Spelt(lambda x: Comparison("!=", x, x), repeats=True),
    "isfinite": Spelt(_size_and_more("<"), repeats=True),
    "isinf": Spelt(_size_and_more("=="), repeats=True),
}
"""Conditions on one argument."""


def repeatable(argument: Expression) -> bool:
    """Tell whether an argument may stand several times in an expression."""
    return sum(1 for _ in argument.walk()) <= MAX_REPEATED


def power(arguments: Sequence[Expression]) -> Expression | None:
    """Return a small whole power as a product; None of others."""
    match arguments:
        case [x, Number(value)] if value in range(1, MAX_POWER + 1) and repeatable(x):
            found = x
            for _ in range(int(value) - 1):
                found = Binary("*", found, x)
            return found
    return None
