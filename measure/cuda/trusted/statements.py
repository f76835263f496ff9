"""The numbers of :mod:`spaces.numerics.numbers` as variables of CUDA C++: rules become
statements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.functions import by_library, of_library
from tilewright.spaces.language.philox import definition

_TEXT = """\
#ifndef __CUDA_ARCH__
extern "C" {
double ceil(double);
double erf(double);
double erfc(double);
double exp(double);
double exp2(double);
double floor(double);
double log(double);
double sqrt(double);
double tanh(double);
LIBRARY
}
#endif
TW_INLINE double ex_infinity() { return exp(1000.0); }
TW_INLINE double ex_floor(double x) { return floor(x); }
TW_INLINE double ex_ceil(double x) { return ceil(x); }
TW_INLINE double ex_exp(double x) { return exp(x); }
TW_INLINE double ex_exp2(double x) { return exp2(x); }
TW_INLINE double ex_log(double x) { return log(x); }
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
FUNCTIONS
TW_INLINE double ex_bfloat16(double x) { return tw::to_float(tw::from_float<bf16>((float)x)); }
TW_INLINE double ex_float16(double x) { return tw::to_float(tw::from_float<f16>((float)x)); }
TW_INLINE double ex_float32(double x) { return (float)x; }
TW_INLINE i64 ex_quotient(i64 a, i64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
TW_INLINE i64 ex_remainder(i64 a, i64 b) { return a - b * ex_quotient(a, b); }
TW_INLINE i64 ex_whole_max(i64 a, i64 b) { return a > b ? a : b; }
TW_INLINE i64 ex_whole_min(i64 a, i64 b) { return a < b ? a : b; }
TW_INLINE i64 ex_nearest(i64 i, i64 extent) { return i < 0 ? 0 : i < extent ? i : extent - 1; }
struct Place { double value; i64 at; };
TW_INLINE Place ex_argmax(Place a, Place b) {
  if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
  const bool no_a = a.value != a.value, no_b = b.value != b.value;
  const bool equal = a.value == b.value || (no_a && no_b);
  if (equal) return a.at < b.at ? a : b;
  return no_a || (!no_b && a.value > b.value) ? a : b;
}
TW_INLINE Place ex_argmin(Place a, Place b) {
  const Place least = ex_argmax({-a.value, a.at}, {-b.value, b.at});
  return {-least.value, least.at};
}
struct Three { double first, second, third; i64 at, next; };
TW_INLINE Three ex_three(Three a, Three b) {
  if (a.first < b.first) { const Three c = a; a = b; b = c; }
  if (a.second >= b.first) return {a.first, a.second, ex_max(a.third, b.first), a.at, a.next};
  return {a.first, b.first, ex_max(a.second, b.second), a.at, b.at};
}
"""
MATHEMATICS = _TEXT.replace(
    "LIBRARY",
    "\n".join(f"double {f.library}({', '.join(['double'] * f.arity)});" for f in of_library()),
).replace(
    "FUNCTIONS\n",
    "".join(f"TW_INLINE {by_library(f, 'double', f'ex_{f.name}', f.library)}" for f in of_library())
    + definition("TW_INLINE", "double", "ex_random"),
)
"""The functions of expressions in float64, by their names with ``ex_`` before; what whole numbers
need; the first place of the greatest or least value, or of a NaN, where there is one (-1 is no
place); and the three greatest values, with the places of two."""

_WHOLE = {"//": "ex_quotient", "%": "ex_remainder"}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
DOUBLE, WHOLE, CONDITION = "double", "i64", "bool"
"""The types of variables."""


class Statements:
    """:class:`spaces.numerics.numbers.Numbers` that write a statement for each operation.

    ``lines`` declare one variable after the other; :data:`MATHEMATICS` is what they call.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def variable(self, expression: str, kind: str = DOUBLE) -> Variable:
        """Return a new variable that has the value of an expression in C."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"const {kind} {name} = {expression};")
        return Variable(self, name, kind)

    def constant(self, value: float) -> Variable:
        """Return a literal."""
        return self.variable(text(value))

    def is_integer(self, value: Any) -> bool:
        """Tell whether a value has the type of integers."""
        return _kind(value) == WHOLE

    def wide(self, value: Any) -> Variable:
        """Return a conversion, of what is no double."""
        if isinstance(value, Variable) and value.kind == DOUBLE:
            return value
        return self.variable(f"(double){text(value)}")

    def operation(self, operator: str, a: Any, b: Any) -> Variable:
        """Return C's operators, but for ``//`` and ``%``, which round down."""
        if operator in _WHOLE:
            return self.variable(f"{_WHOLE[operator]}({text(a)}, {text(b)})", WHOLE)
        if operator in _COMPARISONS:
            return self.variable(f"{text(a)} {operator} {text(b)}", CONDITION)
        whole = operator != "/" and self.is_integer(a) and self.is_integer(b)
        if operator == "/":
            a = self.wide(a)
        return self.variable(f"{text(a)} {operator} {text(b)}", WHOLE if whole else DOUBLE)

    def least(self, a: Any, b: Any) -> Variable:
        """NaN where one of them is."""
        return self._call("min", a, b)

    def greatest(self, a: Any, b: Any) -> Variable:
        """NaN where one of them is."""
        return self._call("max", a, b)

    def select(self, condition: Any, a: Any, b: Any) -> Variable:
        """Return the conditional operator."""
        kinds = {_kind(a), _kind(b)}
        kind = kinds.pop() if len(kinds) == 1 else DOUBLE
        return self.variable(f"{text(condition)} ? {text(a)} : {text(b)}", kind)

    def call(self, function: str, arguments: Sequence[Any]) -> Variable:
        """Return a function of :data:`MATHEMATICS`."""
        return self._call(function, *arguments)

    def cast(self, value: Any, name: str) -> Variable:
        """Convert as the device does."""
        if name == "float64":
            return self.variable(text(value))
        narrow = f"(float){text(value)}"
        if name == "float32":
            return self.variable(narrow)
        return self.variable(f"tw::to_float(tw::from_float<{C_TYPES[name]}>({narrow}))")

    def _call(self, function: str, *arguments: Any) -> Variable:
        return self.variable(f"ex_{function}({', '.join(map(text, arguments))})")


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of C with Python's operators."""

    code: Statements
    name: str
    kind: str = DOUBLE

    def __str__(self) -> str:
        return self.name

    def __add__(self, other: Any) -> Variable:
        return self.code.operation("+", self, other)

    def __sub__(self, other: Any) -> Variable:
        return self.code.operation("-", self, other)

    def __mul__(self, other: Any) -> Variable:
        return self.code.operation("*", self, other)

    def __truediv__(self, other: Any) -> Variable:
        return self.code.operation("/", self, other)

    def __neg__(self) -> Variable:
        return self.code.variable(f"-{self}", self.kind)

    def __invert__(self) -> Variable:
        return self.code.variable(f"!{self}", CONDITION)

    def __lt__(self, other: Any) -> Variable:
        return self.code.operation("<", self, other)

    def __le__(self, other: Any) -> Variable:
        return self.code.operation("<=", self, other)

    def __gt__(self, other: Any) -> Variable:
        return self.code.operation(">", self, other)

    def __ge__(self, other: Any) -> Variable:
        return self.code.operation(">=", self, other)

    def __ne__(self, other: object) -> Variable:  # type: ignore[override]
        return self.code.operation("!=", self, other)

    def __and__(self, other: Any) -> Variable:
        return self.code.variable(f"{self} && {text(other)}", CONDITION)

    def __or__(self, other: Any) -> Variable:
        return self.code.variable(f"{self} || {text(other)}", CONDITION)


def as_double(value: str, kind: str) -> str:
    """C text of an element of dtype ``kind``, widened to double."""
    exact = dtype(kind).bytes > 2 or dtype(kind).is_integer
    return f"(double){value}" if exact else f"(double)tw::to_float({value})"


def _kind(value: Any) -> str:
    if isinstance(value, Variable):
        return value.kind
    return WHOLE if isinstance(value, int) else DOUBLE


def text(value: Any) -> str:
    """A variable's name, or a literal: integers of Python are whole."""
    if isinstance(value, Variable):
        return value.name
    if isinstance(value, int):
        return f"(i64){value}"
    if math.isinf(value):
        return "ex_infinity()" if value > 0 else "-ex_infinity()"
    return repr(float(value))
