"""Expressions of a program in CUDA C++; what is the same along a row is computed before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.scalar_code import ScalarCode, Value, multiply_add
from tilewright.spaces.cuda.wide import WholeCode
from tilewright.spaces.dtypes import EXACT_WIDE
from tilewright.spaces.language.kinds import KEEPING
from tilewright.spaces.language.magnitude import Magnitudes
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Number,
    Read,
)

ONE = Number(1.0)


def computed_in(program: Program) -> str:
    """Return the C type that a program is computed in."""
    return C_TYPES[program.computed_in]


def calls_integers(magnitudes: Magnitudes, expressions: Iterable[Expression]) -> bool:
    """Return true if expressions call functions of whole numbers where floats are too inexact."""
    return any(
        isinstance(part, Call) and magnitudes.is_integer(part)
        for expression in expressions
        for node in expression.values()
        if magnitudes.takes_integers(node)
        for part in node.values()
    )


@dataclass(frozen=True)
class ExactCode(ScalarCode):
    """Code in which functions that keep numbers whole are computed in integers, too."""

    explicit: bool = True

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """Return a call of the function, on integers if all arguments are whole."""
        if function in KEEPING and all(argument.whole for argument in arguments):
            return WholeCode().call(function, arguments)
        return super().call(function, arguments)


@dataclass
class Ahead:
    """Variables that hold subexpressions which are the same for all elements of a row.

    ``varies`` returns true for expressions that are not; ``found`` gives the variables by
    expression.
    """

    varies: Callable[[Expression], bool]
    prefix: str
    found: dict[Expression, str] = field(default_factory=dict)

    def name(self, expression: Expression) -> str:
        """Return the variable of an expression."""
        return self.found.setdefault(expression, f"{self.prefix}{len(self.found)}")


@dataclass(frozen=True)
class Scope:
    """The way leaves of expressions are written in C.

    ``read`` writes arrays and states, ``axis`` values of axes; ``real`` is the C type that is
    computed in, ``magnitudes`` are those of the program. ``is_operand`` returns true for reads of
    operands of real numbers.
    """

    real: str
    read: Callable[[Read], Value]
    axis: Callable[[str], Value]
    magnitudes: Magnitudes
    is_operand: Callable[[Read], bool] = lambda read: False

    def number(self, expression: Expression, ahead: Ahead | None = None) -> str:
        """Return C text of the expression, in the type computed in."""
        return self._code.as_real(self.value(expression, ahead)).text

    def value(self, node: Expression, ahead: Ahead | None = None, exact: bool = False) -> Value:
        """Return C text of the expression, with its type.

        If ``ahead`` is given, subexpressions that are the same along a row become variables of it,
        and quotients by them become products. All that is whole is an integer if the expression is
        to be ``exact``, as numbers are that floats do not tell apart.
        """
        code = ExactCode(self.real) if exact else self._code
        return node.fold(code, lambda inner: self._known(inner, ahead, exact))

    def factors(self, expression: Expression) -> tuple[Expression, ...]:
        """Return both factors of a product of real numbers; of others, the expression alone."""
        match expression:
            case Binary("*", left, right) if not self.value(expression).whole:
                return left, right
        return (expression,)

    @property
    def _code(self) -> ScalarCode:
        return ScalarCode(self.real, explicit=True)

    def _known(self, node: Expression, ahead: Ahead | None, exact: bool) -> Value | None:
        if ahead and not isinstance(node, Number) and not ahead.varies(node):
            loses = exact and self.magnitudes.is_integer(node) and not self.value(node).whole
            if not loses:
                return self._ahead(node, ahead)
        match node:
            case Number(value) if value.is_integer() and value <= EXACT_WIDE:
                return Value(str(int(value)), whole=True)
            case Comparison() if self.real == "float" and self.magnitudes.compares_large(node):
                return self._compared(node, ahead)
            case AxisValue(name):
                return self.axis(name)
            case Read():
                return self.read(node)
            case Binary("/", left, right) if ahead and not ahead.varies(right):
                inverse = self._ahead(Binary("/", ONE, right), ahead)
                return Value(f"({self.number(left, ahead)} * {inverse})")
        if not exact and self.real == "float" and self.magnitudes.is_large(node):
            return self.value(node, ahead, exact=True)
        fused = multiply_add(node, self.is_operand)
        if fused and not self.value(node.children[0]).whole:
            return Value(f"tw::fused({', '.join(self.number(part, ahead) for part in fused)})")
        return None

    def _compared(self, node: Comparison, ahead: Ahead | None) -> Value:
        """Return a comparison of whole numbers that floats do not tell apart.

        They are compared as integers, or as doubles if one side is a real number.
        """
        left, right = (
            self.value(side, ahead, exact=self.magnitudes.is_integer(side))
            for side in (node.left, node.right)
        )
        if not (left.whole and right.whole):
            left, right = Value(f"(double)({left})"), Value(f"(double)({right})")
        return Value(f"({left} {node.operator} {right})")

    def _ahead(self, node: Expression, ahead: Ahead) -> Value:
        if isinstance(node, AxisValue):
            return self.axis(node.name)
        if isinstance(node, Read) and self.read(node).whole:
            return self.read(node)
        return Value(f"{ahead.name(node)}[k]", whole=self.value(node).whole)
