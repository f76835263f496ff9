"""Expressions as CUDA C++ on one number at a time, for all templates of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isinf

from tilewright.spaces.language.evaluation import OPERATIONS
from tilewright.spaces.language.meaning import Operations
from tilewright.spaces.language.text import NEGATION, Infix, Written
from tilewright.spaces.language.tree import Binary, Expression, Read

WHOLE = {"//": "tw_quotient", "%": "tw_remainder"}
"""C functions of whole numbers alone: rounded down, as in the language."""
_LITERAL = re.compile(r"\(?(-?\d+)\)?")


def multiply_add(
    node: Expression, is_operand: Callable[[Read], bool]
) -> tuple[Expression, Expression, Expression] | None:
    """Return the factors and the addend of a product plus an operand, which may be rounded once.

    No operand is by intention what cancels a product, so that one rounding does no harm. None for
    others.
    """
    match node:
        case Binary("+", Binary("*", left, right), Read() as addend) if is_operand(addend):
            return left, right, addend
        case Binary("+", Read() as addend, Binary("*", left, right)) if is_operand(addend):
            return left, right, addend
    return None


def literal(value: float, real: str = "float") -> str:
    """Return C text of a number of the type ``real``, float or double; infinities are floats."""
    if isinf(value):
        return f"{'-' if value < 0 else ''}tw::bits_float(0x7f800000u)"
    return repr(value) + ("f" if real == "float" else "")


@dataclass(frozen=True)
class Value(Written):
    """C text: of a 64-bit integer if ``whole``, else of the type computed in."""

    whole: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class ScalarCode(Operations[Value]):
    """The meaning (:class:`spaces.language.tree.Meaning`) of operations as C in the type ``real``.

    ``real`` is float or double; functions are those of :mod:`spaces.cuda.scalar_math`. Whoever
    folds an expression says how arrays are read: as C that needs no parentheses. Operations on
    whole numbers alone are computed in integers. Parentheses are those of
    :class:`~spaces.language.text.Infix`.
    """

    real: str = "float"
    explicit: bool = False

    def number(self, value: float) -> Value:
        """Return a literal."""
        return Value(repr(value) + self._suffix)

    def negation(self, inner: Value) -> Value:
        """Return the negation, in the type of its operand."""
        return self._value(self._infix.negation(inner), inner.whole)

    def binary(self, operator: str, left: Value, right: Value) -> Value:
        """Return a binary operation, in integers if both sides and the result are whole."""
        if operator in WHOLE:
            return Value(f"{WHOLE[operator]}({left}, {right})", whole=True)
        literals = [found for side in (left, right) if (found := _LITERAL.fullmatch(side.text))]
        if operator != "/" and len(literals) == 2:
            return _of_literals(operator, *(int(found[1]) for found in literals))
        whole = left.whole and right.whole and operator != "/"
        left, right = self._alike(whole, left, right)
        return self._value(self._infix.binary(operator, left, right), whole)

    def comparison(self, operator: str, left: Value, right: Value) -> Value:
        """Return a comparison, in integers if both sides are whole."""
        left, right = self._alike(left.whole and right.whole, left, right)
        return self._value(self._infix.comparison(operator, left, right))

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Return the conditional operator."""
        whole = then.whole and otherwise.whole
        then, otherwise = self._alike(whole, then, otherwise)
        return Value(f"({condition} ? {then} : {otherwise})", whole=whole)

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """Return a call of the function named ``tw_`` and the function's name."""
        return Value(f"tw_{function}({', '.join(map(str, map(self.as_real, arguments)))})")

    def as_real(self, value: Value) -> Value:
        """Return the value in the type computed in."""
        if not value.whole:
            return value
        if value.text.isdigit():
            return Value(f"{value}.0{self._suffix}")
        return Value(f"({self.real}){value.nested(NEGATION)}")

    @property
    def _infix(self) -> Infix:
        return Infix(self.explicit)

    @property
    def _suffix(self) -> str:
        return "f" if self.real == "float" else ""

    def _alike(self, whole: bool, *values: Value) -> Sequence[Value]:
        return values if whole else [self.as_real(value) for value in values]

    def _value(self, written: Written, whole: bool = False) -> Value:
        return Value(written.text, written.binds, whole=whole)


def _of_literals(operator: str, left: int, right: int) -> Value:
    """Return the result of two whole literals, which C would compute in 32 bits."""
    found = OPERATIONS[operator](left, right)
    return Value(str(found) if found >= 0 else f"({found})", whole=True)
