"""Expressions of a program as CUDA C++, with what is the same along a row computed before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spaces.cuda.abi import C_TYPES
from spaces.language.program import Program
from spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

ONE = Number(1.0)
WHOLE = {"//": "tw_quotient", "%": "tw_remainder"}
"""Functions of whole numbers alone: rounded down, as the language has them."""


def computed_in(program: Program) -> str:
    """The C type that a program is computed in."""
    return C_TYPES[program.computed_in]


@dataclass(frozen=True)
class Value:
    """A C expression: of a 64-bit integer if ``whole``, else of the type computed in."""

    text: str
    whole: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass
class Ahead:
    """What of an expression is the same for all elements of a row, by the names of variables that
    hold it. ``varies`` tells what is not."""

    varies: Callable[[Expression], bool]
    prefix: str
    found: dict[Expression, str] = field(default_factory=dict)

    def name(self, expression: Expression) -> str:
        """The variable of an expression."""
        return self.found.setdefault(expression, f"{self.prefix}{len(self.found)}")


@dataclass(frozen=True)
class Scope:
    """How leaves are written: ``read`` of arrays and states, ``axis`` of values of axes; ``real``
    is the C type that is computed in."""

    real: str
    read: Callable[[Read], Value]
    axis: Callable[[str], Value]

    def number(self, expression: Expression, ahead: Ahead | None = None) -> str:
        """C text of the expression, in the type computed in."""
        return self._real(self.value(expression, ahead))

    def value(self, node: Expression, ahead: Ahead | None = None) -> Value:
        """C text of the expression; what is the same along a row becomes a variable of ``ahead``,
        if that is given, and quotients by it products."""
        if ahead and not isinstance(node, Number) and not ahead.varies(node):
            return self._ahead(node, ahead)
        match node:
            case Number(value):
                return self._literal(value)
            case AxisValue(name):
                return self.axis(name)
            case Read():
                return self.read(node)
            case Negation(inner):
                found = self.value(inner, ahead)
                return Value(f"(-{found})", found.whole)
            case Binary("/", left, right) if ahead and not ahead.varies(right):
                inverse = self._ahead(Binary("/", ONE, right), ahead)
                return Value(f"({self.number(left, ahead)} * {inverse})")
            case Binary(operator, left, right):
                return self._binary(operator, self.value(left, ahead), self.value(right, ahead))
            case Comparison(operator, left, right):
                return self._binary(operator, self.value(left, ahead), self.value(right, ahead))
            case Select(condition, then, otherwise):
                return self._select(*(self.value(n, ahead) for n in (condition, then, otherwise)))
            case Call(function, arguments):
                texts = ", ".join(self.number(a, ahead) for a in arguments)
                return Value(f"tw_{function}({texts})")
        raise TypeError(f"{node} is no expression of elements")

    def _ahead(self, node: Expression, ahead: Ahead) -> Value:
        if isinstance(node, AxisValue):
            return self.axis(node.name)
        if isinstance(node, Read) and self.read(node).whole:
            return self.read(node)
        return Value(f"{ahead.name(node)}[k]")

    def _literal(self, value: float) -> Value:
        if value.is_integer() and value < 2**24:
            return Value(str(int(value)), whole=True)
        return Value(repr(value) + ("f" if self.real == "float" else ""))

    def _real(self, value: Value) -> str:
        if not value.whole:
            return value.text
        if value.text.isdigit():
            return f"{value.text}.0" + ("f" if self.real == "float" else "")
        return f"({self.real}){value.text}"

    def _binary(self, operator: str, left: Value, right: Value) -> Value:
        whole = left.whole and right.whole and operator != "/"
        if operator in WHOLE:
            return Value(f"{WHOLE[operator]}({left}, {right})", whole=True)
        texts = (left.text, right.text) if whole else (self._real(left), self._real(right))
        return Value(f"({texts[0]} {operator} {texts[1]})", whole)

    def _select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        whole = then.whole and otherwise.whole
        texts = (then.text, otherwise.text) if whole else (self._real(then), self._real(otherwise))
        return Value(f"({condition} ? {texts[0]} : {texts[1]})", whole)
