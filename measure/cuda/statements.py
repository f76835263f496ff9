"""The numbers of :mod:`spaces.numerics.interval` as variables of CUDA C++: rules become
statements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spaces.cuda.abi import C_TYPES
from spaces.dtypes import dtype

MATHEMATICS = """\
#ifndef __CUDA_ARCH__
extern "C" {
double ceil(double);
double erf(double);
double erfc(double);
double exp(double);
double floor(double);
double sqrt(double);
double tanh(double);
}
#endif
TW_INLINE double ex_infinity() { return exp(1000.0); }
TW_INLINE double ex_floor(double x) { return floor(x); }
TW_INLINE double ex_ceil(double x) { return ceil(x); }
TW_INLINE double ex_exp(double x) { return exp(x); }
TW_INLINE double ex_tanh(double x) { return tanh(x); }
TW_INLINE double ex_erf(double x) { return erf(x); }
TW_INLINE double ex_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
TW_INLINE double ex_max(double a, double b) { return a > b || a != a ? a : b; }
TW_INLINE double ex_min(double a, double b) { return a < b || a != a ? a : b; }
TW_INLINE double ex_relu(double x) { return ex_max(x, 0.0); }
TW_INLINE double ex_gelu(double x) {
  return 0.5 * ex_max(x, -40.0) * erfc(-0.70710678118654757 * x);
}
TW_INLINE double ex_gelu_tanh(double x) {
  const double y = ex_max(x, -40.0);
  return y * ex_sigmoid(1.5957691216057308 * (y + 0.044715 * y * y * y));
}
TW_INLINE double ex_silu(double x) { return ex_max(x, -800.0) * ex_sigmoid(x); }
TW_INLINE double ex_sqrt(double x) { return sqrt(x); }
TW_INLINE double ex_rsqrt(double x) { return 1.0 / sqrt(x); }
TW_INLINE double ex_abs(double x) { return x < 0.0 ? -x : x; }
TW_INLINE double ex_bfloat16(double x) { return tw::to_float(tw::from_float<bf16>((float)x)); }
TW_INLINE double ex_float16(double x) { return tw::to_float(tw::from_float<f16>((float)x)); }
TW_INLINE double ex_float32(double x) { return (float)x; }
"""
"""The functions of epilogues in float64, by their names with ``ex_`` before."""


class Statements:
    """:class:`spaces.numerics.interval.Numbers` that write a statement for each operation.

    ``lines`` declare one variable after the other; :data:`MATHEMATICS` is what they call.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def variable(self, text: str, kind: str = "double") -> Variable:
        """A new variable that has the value of the expression ``text``."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"const {kind} {name} = {text};")
        return Variable(self, name)

    def constant(self, value: float) -> Variable:
        """A literal."""
        return self.variable(_text(value))

    def least(self, a: Any, b: Any) -> Variable:
        """NaN where one of them is."""
        return self._call("min", a, b)

    def greatest(self, a: Any, b: Any) -> Variable:
        """NaN where one of them is."""
        return self._call("max", a, b)

    def select(self, condition: Any, a: Any, b: Any) -> Variable:
        """The conditional operator."""
        return self.variable(f"{condition} ? {_text(a)} : {_text(b)}")

    def call(self, function: str, arguments: Sequence[Any]) -> Variable:
        """A function of :data:`MATHEMATICS`."""
        return self._call(function, *arguments)

    def cast(self, value: Any, name: str) -> Variable:
        """By the conversions of the device."""
        if name == "float64":
            return self.variable(_text(value))
        narrow = f"(float){_text(value)}"
        if name == "float32":
            return self.variable(narrow)
        return self.variable(f"tw::to_float(tw::from_float<{C_TYPES[name]}>({narrow}))")

    def _call(self, function: str, *arguments: Any) -> Variable:
        return self.variable(f"ex_{function}({', '.join(map(_text, arguments))})")


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of C with Python's operators."""

    code: Statements
    name: str

    def __str__(self) -> str:
        return self.name

    def __add__(self, other: Any) -> Variable:
        return self._number("+", other)

    def __sub__(self, other: Any) -> Variable:
        return self._number("-", other)

    def __mul__(self, other: Any) -> Variable:
        return self._number("*", other)

    def __truediv__(self, other: Any) -> Variable:
        return self._number("/", other)

    def __neg__(self) -> Variable:
        return self.code.variable(f"-{self}")

    def __lt__(self, other: Any) -> Variable:
        return self._condition("<", other)

    def __le__(self, other: Any) -> Variable:
        return self._condition("<=", other)

    def __gt__(self, other: Any) -> Variable:
        return self._condition(">", other)

    def __ge__(self, other: Any) -> Variable:
        return self._condition(">=", other)

    def __ne__(self, other: object) -> Variable:  # type: ignore[override]
        return self._condition("!=", other)

    def __and__(self, other: Any) -> Variable:
        return self._condition("&&", other)

    def __or__(self, other: Any) -> Variable:
        return self._condition("||", other)

    def _number(self, operator: str, other: Any) -> Variable:
        return self.code.variable(f"{self} {operator} {_text(other)}")

    def _condition(self, operator: str, other: Any) -> Variable:
        return self.code.variable(f"{self} {operator} {_text(other)}", "bool")


def as_double(value: str, kind: str) -> str:
    """C text of an element of dtype ``kind``, widened to double."""
    exact = dtype(kind).bytes > 2 or dtype(kind).is_integer
    return f"(double){value}" if exact else f"(double)tw::to_float({value})"


def _text(value: Any) -> str:
    if isinstance(value, Variable):
        return value.name
    if math.isinf(value):
        return "ex_infinity()" if value > 0 else "-ex_infinity()"
    return repr(float(value))
