"""Whole numbers of 64 bits in CUDA C++, for numbers that floats do not tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.scalar_code import ScalarCode, Value
from tilewright.spaces.language.evaluation import literal
from tilewright.spaces.language.magnitude import Magnitudes
from tilewright.spaces.language.tree import Comparison, Expression

HELPERS = """\
TW_INLINE i64 tw_whole_quotient(i64 a, i64 b) {
  return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}
TW_INLINE i64 tw_whole_remainder(i64 a, i64 b) {
  return b == 0 ? 0 : a - b * tw_whole_quotient(a, b);
}
TW_INLINE i64 tw_whole_max(i64 a, i64 b) { return a > b ? a : b; }
TW_INLINE i64 tw_whole_min(i64 a, i64 b) { return a < b ? a : b; }
TW_INLINE i64 tw_whole_relu(i64 a) { return a > 0 ? a : 0; }
TW_INLINE i64 tw_whole_abs(i64 a) { return a > 0 ? a : -a; }
TW_INLINE i64 tw_whole_floor(i64 a) { return a; }
"""
"""Functions of whole numbers; quotients and remainders by 0 are 0."""
_FUNCTIONS = {"//": "tw_whole_quotient", "%": "tw_whole_remainder"}


def helpers(magnitudes: Magnitudes, computed: Iterable[Expression]) -> str:
    """Return the C functions that are called if anything that is ``computed`` needs integers."""
    return HELPERS if magnitudes.need_integers(computed) else ""


@dataclass(frozen=True)
class WholeCode(ScalarCode):
    """Operations on whole numbers alone; quotients and remainders by 0 are 0."""

    explicit: bool = True

    def number(self, value: float) -> Value:
        """Return a literal."""
        return Value(f"{literal(value)}LL", whole=True)

    def binary(self, operator: str, left: Value, right: Value) -> Value:
        """Return a binary operation, by a function where C rounds differently."""
        if operator in _FUNCTIONS:
            return Value(f"{_FUNCTIONS[operator]}({left}, {right})", whole=True)
        return super().binary(operator, left, right)

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """Return a call of a function that keeps numbers whole."""
        return Value(f"tw_whole_{function}({', '.join(map(str, arguments))})", whole=True)


@dataclass(frozen=True)
class Wide:
    """The code of the whole numbers of a program that floats do not tell apart.

    ``leaf`` returns C text of axes and entries as ``i64``, and of comparisons that it knows by
    itself; ``real`` returns that of expressions as floats.
    """

    magnitudes: Magnitudes
    leaf: Callable[[Expression], str | None]
    real: Callable[[Expression], Value]

    def value(self, node: Expression) -> Value | None:
        """Return a large whole number as a float, rounded once; None for others."""
        is_condition = isinstance(node, Comparison)
        if is_condition or not self.magnitudes.takes_integers(node):
            return None
        return Value(f"(float)({self.whole(node)})")

    def condition(self, node: Comparison) -> Value | None:
        """Return a comparison of large whole numbers; None for others.

        It compares integers if both sides are whole, else doubles.
        """
        return self._compared(node) if self.magnitudes.compares_large(node) else None

    def whole(self, node: Expression) -> Value:
        """Return a whole number."""
        return node.fold(WholeCode(), self._known)

    def _known(self, node: Expression) -> Value | None:
        found = self.leaf(node)
        if isinstance(node, Comparison):
            return self._compared(node) if found is None else Value(found)
        return None if found is None else Value(found, whole=True)

    def _compared(self, node: Comparison) -> Value:
        sides = node.left, node.right
        if all(map(self.magnitudes.is_integer, sides)):
            left, right = map(self.whole, sides)
        else:
            left, right = (Value(f"(double)({self._real(side)})") for side in sides)
        return Value(f"({left} {node.operator} {right})")

    def _real(self, node: Expression) -> Value:
        return self.whole(node) if self.magnitudes.is_large(node) else self.real(node)
