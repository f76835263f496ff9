"""Expressions as C on one number at a time: whole numbers of 64 bits stay whole, all else is
float64, as in :mod:`spaces.language.evaluation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.language.evaluation import OPERATIONS, literal
from tilewright.spaces.language.kinds import KEEPING
from tilewright.spaces.language.meaning import Operations
from tilewright.spaces.language.tree import Expression, Read

WRAPPING = {"+": "plus", "-": "minus", "*": "times", "//": "quotient", "%": "remainder"}
"""Functions of two whole numbers, by operator."""
DIVIDING = ("//", "%")
"""Operators that are functions of float64 numbers, too."""


@dataclass(frozen=True)
class Value:
    """C text, closed in itself: of a whole number, or of a float64. ``literal`` is the value of a
    whole one that is known."""

    text: str
    whole: bool
    literal: int | None = None

    @property
    def real(self) -> str:
        """Return the same as a float64."""
        return f"(double)({self.text})" if self.whole else self.text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Scalars(Operations[Value]):
    """The meaning (:class:`spaces.language.tree.Meaning`) of expressions as :class:`Value`.
    ``axes`` has the variable of each axis; ``infinity`` is an expression. How arrays are read is
    for whoever folds an expression to say."""

    axes: Mapping[str, str]
    infinity: str

    def number(self, value: float) -> Value:
        """Return a literal: whole, if it is as far as float64 has each whole number."""
        number = literal(value)
        if isinstance(number, int):
            return Value(f"(i64){number}", True, number)
        if abs(number) == float("inf"):
            return Value(self.infinity if number > 0 else f"(-{self.infinity})", False)
        return Value(repr(number), False)

    def axis(self, name: str) -> Value:
        """Return the variable of its loop."""
        return Value(self.axes[name], True)

    def negation(self, inner: Value) -> Value:
        """Negate a value and keep its kind."""
        if inner.literal is not None:
            return Value(f"((i64){-inner.literal})", True, -inner.literal)
        return Value(f"tw_whole_minus(0, {inner})" if inner.whole else f"(-{inner})", inner.whole)

    def binary(self, operator: str, left: Value, right: Value) -> Value:
        """Return the whole of whole numbers, but for ``/``; of literals by Python, which is
        exact."""
        known = left.literal, right.literal
        if operator in ("+", "-", "*") and None not in known:
            return self.number(OPERATIONS[operator](*known))
        if left.whole and right.whole and operator != "/":
            return Value(f"tw_whole_{WRAPPING[operator]}({left}, {right})", True)
        if operator in DIVIDING:
            return Value(f"tw_real_{WRAPPING[operator]}({left.real}, {right.real})", False)
        return Value(f"({left.real} {operator} {right.real})", False)

    def comparison(self, operator: str, left: Value, right: Value) -> Value:
        """Compare two values; integers are compared exactly."""
        if left.whole and right.whole:
            return Value(f"({left} {operator} {right})", True)
        return Value(f"({left.real} {operator} {right.real})", True)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Return the conditional operator: the side that is not chosen is not computed."""
        whole = then.whole and otherwise.whole
        sides = (then.text, otherwise.text) if whole else (then.real, otherwise.real)
        return Value(f"({condition} ? {sides[0]} : {sides[1]})", whole)

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """Whole where the function keeps whole numbers and all arguments are."""
        whole = function in KEEPING and all(argument.whole for argument in arguments)
        given = ", ".join(a.text if whole else a.real for a in arguments)
        return Value(f"tw_{'whole' if whole else 'real'}_{function}({given})", whole)


def is_integer_value(expression: Expression, whole: Mapping[str, bool]) -> bool:
    """Tell whether an expression is written as an integer, if the arrays in ``whole`` hold
    integers.
    """

    def known(node: Expression) -> Value | None:
        if not isinstance(node, Read):
            return None
        outside = node.outside
        return Value("", whole[node.name] and (outside is None or float(outside).is_integer()))

    return expression.fold(Scalars(dict.fromkeys(expression.axes, ""), ""), known).whole
