"""Values of expressions with intervals that hold the values which right kernels may have instead.

The rules are those of :mod:`spaces.numerics.interval`. They are written once for all kinds of
numbers: arrays of NumPy and the variables of generated code. Values of integers alone are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.language.evaluation import is_literal, literal
from tilewright.spaces.language.kinds import KEEPING
from tilewright.spaces.numerics.interval import Interval, Rules, nowhere
from tilewright.spaces.numerics.numbers import Numbers

_FIRST = {"max": ">", "relu": ">", "abs": ">", "min": "<"}
"""Functions of whole numbers that give one of two, and when it is the first."""


@dataclass(frozen=True)
class Approximate:
    """Exact values, and what right kernels may have instead.

    ``interval`` is None for whole numbers and conditions that all kernels agree about.
    """

    value: Any
    interval: Interval | None = None


def bounds(x: Approximate, numbers: Numbers) -> Interval:
    """Return the interval, of one value where all is exact."""
    if x.interval is not None:
        return x.interval
    wide = numbers.wide(x.value)
    return Interval(wide, wide, nowhere(numbers))


@dataclass(frozen=True)
class Approximation(ABC):
    """The meaning (:class:`spaces.language.tree.Meaning`) of expressions as :class:`Approximate`
    values; where axes and arrays have theirs, subclasses say."""

    rules: Rules

    @abstractmethod
    def axis(self, name: str) -> Approximate:
        """Whole numbers."""

    @abstractmethod
    def entry(self, name: str, indices: Sequence[Any]) -> tuple[Approximate, Any]:
        """Return an entry, or the nearest one to indices beyond the borders; and whether these are
        within."""

    @property
    def numbers(self) -> Numbers:
        """The numbers that rules compute with."""
        return self.rules.numbers

    def bounds(self, x: Approximate) -> Interval:
        """Bound a value in the type that kernels compute in. A kernel may have rounded an integer
        to that type, or not.
        """
        if isinstance(x.value, int):
            return self.rules.number(x.value)
        if self.rules.kind != "float32" or not self.is_integer(x):
            return bounds(x, self.numbers)
        numbers, exact = self.numbers, self.numbers.wide(x.value)
        near = numbers.cast(exact, self.rules.kind)
        ends = numbers.least(exact, near), numbers.greatest(exact, near)
        return Interval(*ends, nowhere(numbers))

    def radius(self, x: Approximate) -> Any:
        """Bound the distance of a kernel's value from the exact one; infinite where it may be
        anything.
        """
        numbers, b = self.numbers, self.bounds(x)
        distance = numbers.greatest(b.high - x.value, x.value - b.low)
        zero, infinite = numbers.constant(0.0), numbers.constant(float("inf"))
        exact = numbers.operation("==", b.low, b.high)
        return numbers.select(b.free, infinite, numbers.select(exact, zero, distance))

    def is_integer(self, x: Approximate) -> bool:
        """Tell whether these are integers, which are exact in all kernels."""
        return x.interval is None and self.numbers.is_integer(x.value)

    def number(self, value: float) -> Approximate:
        """Return a literal; a whole one is an integer."""
        number = literal(value)
        if isinstance(number, int):
            return Approximate(number)
        return Approximate(self.numbers.constant(value), self.rules.number(value))

    def read(self, name: str, indices: Sequence[Approximate], outside: float | None) -> Approximate:
        """Return the entries, or ``outside``. Beyond borders where no condition holds, any
        entry."""
        found, within = self.entry(name, [index.value for index in indices])
        if outside is not None and within is not True:
            constant = int(outside) if self.is_integer(found) else self.numbers.constant(outside)
            found = self.select(Approximate(within), found, Approximate(constant))
        return self._of_whole(found, indices)

    def negation(self, inner: Approximate) -> Approximate:
        """Exact."""
        return Approximate(-inner.value, inner.interval and self.rules.negation(inner.interval))

    def binary(self, operator: str, left: Approximate, right: Approximate) -> Approximate:
        """Return one operation and its rounding; none among whole numbers."""
        if is_literal(operator, left.value, right.value):
            return self.number(self._operation(operator, left, right))
        value = self._operation(operator, left, right)
        whole = operator != "/" and self.is_integer(left) and self.is_integer(right)
        if operator in ("//", "%") or whole:
            return self._of_whole(Approximate(value), (left, right))
        bounds = self.bounds(left), self.bounds(right)
        return Approximate(value, self.rules.binary(operator, *bounds))

    def comparison(self, operator: str, left: Approximate, right: Approximate) -> Approximate:
        """Return True or false; an interval where kernels may differ, from 0 (false) to 1 (true).
        Whole numbers are not rounded before they are compared."""
        value = self._operation(operator, left, right)
        if left.interval is None and right.interval is None:
            return Approximate(value)
        exact = [
            bounds(x, self.numbers) if self._varies(x) else self.bounds(x) for x in (left, right)
        ]
        return Approximate(value, self.rules.comparison(operator, *exact))

    def select(
        self, condition: Approximate, then: Approximate, otherwise: Approximate
    ) -> Approximate:
        """Return one of two, or either where kernels may differ about the condition."""
        value = self.numbers.select(condition.value, then.value, otherwise.value)
        if condition.interval is None and then.interval is None and otherwise.interval is None:
            return Approximate(value)
        never = nowhere(self.numbers)
        holding = condition.interval or Interval(condition.value, condition.value, never)
        bounds = self.bounds(then), self.bounds(otherwise)
        return Approximate(value, self.rules.select(holding, *bounds))

    def call(self, function: str, arguments: Sequence[Approximate]) -> Approximate:
        """Return a function and its error; none among whole numbers."""
        if function in KEEPING and all(map(self.is_integer, arguments)):
            if function == "floor":
                return arguments[0]
            return Approximate(self._extreme(function, [a.value for a in arguments]))
        value = self.numbers.call(function, [argument.value for argument in arguments])
        return Approximate(value, self.rules.call(function, list(map(self.bounds, arguments))))

    def _varies(self, x: Approximate) -> bool:
        """Tell whether these are integers, and not a literal."""
        return self.is_integer(x) and not isinstance(x.value, int)

    def _extreme(self, function: str, values: Sequence[Any]) -> Any:
        """Return the greater or the lesser of two whole numbers; of one, or of it and its
        negative."""
        a, b = values if len(values) == 2 else (values[0], -values[0] * (function == "abs"))
        return self.numbers.select(self.numbers.operation(_FIRST[function], a, b), a, b)

    def _of_whole(self, found: Approximate, parts: Sequence[Approximate]) -> Approximate:
        """Widen a result that was computed from integers: it may be anything where kernels may
        differ in these, as they may in a place.
        """
        intervals = [part.interval for part in parts if part.interval is not None]
        if not intervals:
            return found
        bounds = self.bounds(found)
        free = bounds.free
        for each in intervals:
            first, last = (self.numbers.call("floor", [x + 0.5]) for x in (each.low, each.high))
            free = free | each.free | self.numbers.operation("!=", first, last)
        return Approximate(found.value, Interval(bounds.low, bounds.high, free))

    def _operation(self, operator: str, left: Approximate, right: Approximate) -> Any:
        return self.numbers.operation(operator, left.value, right.value)
