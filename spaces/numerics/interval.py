"""Intervals that hold whatever right code may compute, carried through an expression.

A kernel evaluates an epilogue of a sum that is not exact, in float32, operation by operation.
Here each operation takes intervals to the interval of all its possible results: of the arguments'
ends, and widened by the operation's own rounding (Moore, Interval Analysis, 1966). The rules are
written once over :class:`~spaces.numerics.numbers.Numbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.dtypes import DType
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.meaning import Operations
from tilewright.spaces.language.tree import OPPOSITE
from tilewright.spaces.numerics import singular
from tilewright.spaces.numerics.numbers import Numbers

SLACK = 2.0
"""Says by how many times the errors they are held to operations and functions may be off."""


@dataclass(frozen=True)
class Interval:
    """All values from ``low`` to ``high``, both included; surely NaN where both are NaN.

    For a condition, ``low`` tells where it surely holds, and ``high`` where it may hold. Where
    ``free`` holds, every value is possible, NaN included.
    """

    low: Any
    high: Any
    free: Any


@dataclass(frozen=True)
class Arithmetic:
    """A type to compute in: its spacing at 1, its largest number, the least that no code replaces
    by zero, and the spacing of numbers below that. Sums in float16 keep subnormal numbers."""

    unit: float
    largest: float
    least: float
    subnormal: float

    @staticmethod
    def of(name: str) -> Arithmetic:
        """Return the arithmetic of a dtype."""
        limits = np.finfo(name)
        least = limits.smallest_subnormal if name == "float16" else limits.tiny
        numbers = (limits.eps, limits.max, least, limits.smallest_subnormal)
        return Arithmetic(*map(float, numbers))


@dataclass(frozen=True)
class Rules(Operations[Interval]):
    """Interval arithmetic on numbers and operations (:class:`spaces.language.tree.Meaning`), for
    kernels that compute in the dtype ``kind``. If it ``absorbs``, an exact number keeps its value
    when something is added that is too small to change it, as scores are beside a mask. Sums are
    kept in the dtype ``sums``, where it is another one.
    """

    numbers: Numbers
    kind: str
    absorbs: bool = False
    sums: str = ""

    @property
    def sums_in(self) -> str:
        """The dtype that sums are kept in."""
        return self.sums or self.kind

    def number(self, value: float) -> Interval:
        """Return a literal: rounded, if code computes in float32, and then exact."""
        return self._exact(self.numbers.constant(float(np.dtype(self.kind).type(value))))

    def given(self, value: Any, element: DType) -> Interval:
        """An array's value: exact, unless its dtype has more bits than those computed in."""
        interval = self._exact(value)
        wide = element.name in ("float64", "int32", "int64") and self.kind == "float32"
        return self._rounded(interval) if wide else interval

    def negation(self, inner: Interval) -> Interval:
        """Exact."""
        return Interval(-inner.high, -inner.low, inner.free)

    def binary(self, operator: str, left: Interval, right: Interval) -> Interval:
        """Return one operation and its rounding."""
        rules = {"+": self._sum, "-": self._difference, "*": self._product, "/": self._quotient}
        found = self._rounded(rules[operator](left, right))
        if not self.absorbs or operator not in ("+", "-"):
            return found
        other = self.negation(right) if operator == "-" else right
        return self._absorbed(left, right, self._absorbed(other, left, found))

    def call(self, function: str, arguments: Sequence[Interval]) -> Interval:
        """Return a function of the ends, of the points between them at which it turns, and its
        error."""
        if len(arguments) == 2:
            return self._of_two(function, *arguments)
        if len(arguments) == 3:
            return self._of_counters(function, arguments)
        (inner,) = arguments
        known, numbers = FUNCTIONS[function], self.numbers
        low = numbers.call(function, [inner.low])
        high = numbers.call(function, [inner.high])
        free = inner.free | (_is_nan(low) != _is_nan(high))
        if known.period:  # NaN of infinities alone
            free = free | (_is_nan(low) & _is_nan(high) & (inner.low < inner.high))
        ends = low, high
        low, high = numbers.least(*ends), numbers.greatest(*ends)
        for point in known.turning:
            inside = self._holds(inner, point, known.period)
            turn = numbers.call(function, [numbers.constant(point)])
            low = numbers.select(inside, numbers.least(low, turn), low)
            high = numbers.select(inside, numbers.greatest(high, turn), high)
        return self._off(Interval(low, high, free), function)

    def _of_counters(self, function: str, arguments: Sequence[Interval]) -> Interval:
        """Return a function of whole numbers that are known exactly; anything from 0 to 1 of
        others."""
        numbers = self.numbers
        value = numbers.call(function, [each.low for each in arguments])
        first, *others = arguments
        known, free = _is_known(first), first.free
        for each in others:
            known, free = known & _is_known(each), free | each.free
        low = numbers.select(known, value, numbers.constant(0.0))
        high = numbers.select(known, value, numbers.constant(1.0))
        return Interval(low, high, free)

    def _holds(self, inner: Interval, point: float, period: float) -> Any:
        """Tell whether an interval holds a point, or one whole periods from it."""
        if not period:
            return (inner.low < point) & (inner.high > point)
        turns = [
            self.numbers.call("floor", [(end - point) * (1.0 / period)])
            for end in (inner.low, inner.high)
        ]
        return turns[0] < turns[1]

    def _off(self, interval: Interval, function: str) -> Interval:
        """Return the values that code may give whose result is off by a function's error."""
        relative, absolute = (SLACK * error for error in FUNCTIONS[function].error)
        return self._widened(interval, relative, absolute) if relative else interval

    def comparison(self, operator: str, left: Interval, right: Interval) -> Interval:
        """Conditions: from whether it holds whatever values there are to whether it may hold. None
        but ``!=`` holds of a NaN."""
        certain = _CERTAIN[operator](left, right)
        perhaps = ~_CERTAIN[OPPOSITE[operator]](left, right)
        unordered = _is_nan(left.low) | _is_nan(right.low)
        if operator == "!=":
            certain = certain | unordered
        else:
            perhaps = perhaps & ~unordered
        return Interval(certain, perhaps, left.free | right.free)

    def select(self, condition: Interval, then: Interval, otherwise: Interval) -> Interval:
        """Return one of two, or all between both where code may differ about the condition."""
        a, b, choose = then, otherwise, self.numbers.select
        always, perhaps = condition.low, condition.high
        if always is perhaps:
            low = choose(always, a.low, b.low)
            exact = a.low is a.high and b.low is b.high
            high = low if exact else choose(always, a.high, b.high)
            return Interval(low, high, choose(always, a.free, b.free))
        low, high = self.numbers.least(a.low, b.low), self.numbers.greatest(a.high, b.high)
        either = a.free | b.free | (_is_nan(a.low) != _is_nan(b.low))
        free = choose(always, a.free, choose(perhaps, either, b.free))
        return Interval(
            choose(always, a.low, choose(perhaps, low, b.low)),
            choose(always, a.high, choose(perhaps, high, b.high)),
            condition.free | free,
        )

    def stored(self, interval: Interval, output: DType) -> tuple[Any, Any]:
        """Ends of the interval once it is rounded to the output's dtype. Both are NaN where that
        is due, and infinite where everything is allowed."""
        numbers, free = self.numbers, interval.free
        if output.is_integer:
            free = free | _is_nan(interval.low) | _is_nan(interval.high)
            ends = [
                numbers.call("ceil", [interval.low - 0.5]),
                numbers.call("floor", [interval.high + 0.5]),
            ]
            least, most = (numbers.constant(float(x)) for x in output.limits)
            low, high = (numbers.least(numbers.greatest(end, least), most) for end in ends)
        else:
            low, high = (numbers.cast(end, output.name) for end in (interval.low, interval.high))
        infinite = numbers.constant(float("inf"))
        return numbers.select(free, -infinite, low), numbers.select(free, infinite, high)

    # -- rules -----------------------------------------------------------------------------

    def _exact(self, value: Any) -> Interval:
        return Interval(value, value, nowhere(self.numbers))

    def _sum(self, a: Interval, b: Interval) -> Interval:
        """Return the sum of the ends; anything where infinities of both signs may meet."""
        least, most = self.numbers.constant(-float("inf")), self.numbers.constant(float("inf"))
        meet = ((a.low <= least) & (b.high >= most)) | ((a.high >= most) & (b.low <= least))
        return self._of(a.low + b.low, a.high + b.high, a, b, meet)

    def _difference(self, a: Interval, b: Interval) -> Interval:
        return self._sum(a, self.negation(b))

    def _absorbed(self, a: Interval, b: Interval, found: Interval) -> Interval:
        """Return the sum ``found`` of two, which is ``a`` where ``b`` is less than an eighth of a
        unit."""
        numbers, arithmetic = self.numbers, Arithmetic.of(self.kind)
        size = numbers.call("abs", [a.low])
        least = size * (arithmetic.unit / 8)
        small = (b.low >= -least) & (b.high <= least) & ~(a.free | b.free)
        same = (a.low >= a.high) & (size <= arithmetic.largest) & small
        low, high = (numbers.select(same, a.low, end) for end in _ends(found))
        return Interval(low, high, found.free)

    def _product(self, a: Interval, b: Interval) -> Interval:
        """Return the products of ends; anything where zero and an infinity may meet."""
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        meet = (_holds_zero(a) & self._is_infinite(b)) | (_holds_zero(b) & self._is_infinite(a))
        return self._hull(ends, a, b, meet)

    def _is_infinite(self, a: Interval) -> Any:
        """Tell where an interval holds an infinity."""
        infinite = self.numbers.constant(float("inf"))
        return (a.low <= -infinite) | (a.high >= infinite)

    def _quotient(self, a: Interval, b: Interval) -> Interval:
        ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
        hull, off = self._hull(ends, a, b), self._off_reciprocal(a)
        free = hull.free | ((b.low <= 0.0) & (b.high >= 0.0))
        return Interval(hull.low - off, hull.high + off, free)

    def _off_reciprocal(self, dividend: Interval) -> Any:
        """Return the error of a quotient whose divisor has a subnormal reciprocal, by which code
        may multiply; next to nothing of a dividend that is not huge."""
        numbers = self.numbers
        size = numbers.greatest(*(numbers.call("abs", [end]) for end in _ends(dividend)))
        off = size * (SLACK * Arithmetic.of(self.kind).subnormal / 2)
        return numbers.select(off < numbers.constant(float("inf")), off, numbers.constant(0.0))

    def _extreme(self, function: str, a: Interval, b: Interval) -> Interval:
        low = self.numbers.call(function, [a.low, b.low])
        high = self.numbers.call(function, [a.high, b.high])
        return Interval(low, high, a.free | b.free)

    def _of_two(self, function: str, a: Interval, b: Interval) -> Interval:
        """Return a function of two: of all corners and of zero, where it has its extremes; anything
        where it is singular."""
        if function in ("max", "min"):
            return self._extreme(function, a, b)
        numbers = self.numbers
        points = (a.low, a.high, singular.nearest_zero(numbers, a))
        corners = [numbers.call(function, [x, y]) for x in points for y in (b.low, b.high)]
        found = self._hull(corners, a, b)
        free = found.free | singular.WHERE[function](numbers, a, b)
        for corner in corners[1:]:
            free = free | (_is_nan(corner) != _is_nan(corners[0]))
        return self._off(Interval(found.low, found.high, free), function)

    def _hull(self, ends: Sequence[Any], a: Interval, b: Interval, meet: Any = None) -> Interval:
        low = high = ends[0]
        for end in ends[1:]:
            low, high = self.numbers.least(low, end), self.numbers.greatest(high, end)
        return self._of(low, high, a, b, meet)

    def _of(self, low: Any, high: Any, a: Interval, b: Interval, meet: Any = None) -> Interval:
        """Return the interval between two numbers; nothing is known where they are NaN, or where
        numbers ``meet`` within the intervals that give NaN, unless both are exact."""
        numbers = (a.low <= a.low) & (b.low <= b.low)
        exact = (a.low >= a.high) & (b.low >= b.high)
        unknown = _is_nan(low) | _is_nan(high)
        free = (unknown if meet is None else unknown | meet) & numbers & ~exact
        return Interval(low, high, a.free | b.free | free)

    def _rounded(self, interval: Interval) -> Interval:
        arithmetic = Arithmetic.of(self.kind)
        return self._widened(interval, SLACK * arithmetic.unit / 2, arithmetic.least)

    def _widened(self, interval: Interval, relative: float, absolute: float) -> Interval:
        """Widen an interval by an error; what is too large for the type may have become infinite,
        or not yet, as in the sum of a product that is never rounded itself."""
        numbers, largest = self.numbers, Arithmetic.of(self.kind).largest
        lows, highs = ([x * (1.0 - relative), x * (1.0 + relative)] for x in _ends(interval))
        low, high = numbers.least(*lows) - absolute, numbers.greatest(*highs) + absolute
        infinite = numbers.constant(float("inf"))
        low = numbers.select(low < -largest, -infinite, low)
        high = numbers.select(high > largest, infinite, high)
        return Interval(low, high, interval.free)


_CERTAIN: Mapping[str, Callable[[Interval, Interval], Any]] = {
    "<": lambda a, b: a.high < b.low,
    "<=": lambda a, b: a.high <= b.low,
    ">": lambda a, b: a.low > b.high,
    ">=": lambda a, b: a.low >= b.high,
    "==": lambda a, b: (a.low >= b.high) & (b.low >= a.high),
    "!=": lambda a, b: (a.high < b.low) | (b.high < a.low),
}
"""Functions that tell whether a comparison holds for all values of two intervals."""


def nowhere(numbers: Numbers) -> Any:
    """Return a condition that never holds."""
    zero = numbers.constant(0.0)
    return zero < zero


def _ends(interval: Interval) -> tuple[Any, Any]:
    return interval.low, interval.high


def _is_known(each: Interval) -> Any:
    """Tell where an interval is one number, or NaN."""
    return (each.low >= each.high) | (_is_nan(each.low) & _is_nan(each.high))


def _holds_zero(a: Interval) -> Any:
    return (a.low <= 0.0) & (a.high >= 0.0)


def _is_nan(value: Any) -> Any:
    return value != value
