"""The values of expressions together with intervals that hold what right kernels may have instead.

The rules are those of :mod:`spaces.numerics.interval`. What is made of whole numbers alone is
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from spaces.language.evaluation import OPERATIONS
from spaces.language.functions import FUNCTIONS
from spaces.numerics.interval import Interval, Rules


@dataclass(frozen=True)
class Approximate:
    """Exact values, and what right kernels may have instead; they broadcast.

    ``interval`` is None for whole numbers and conditions that all kernels agree about.
    """

    value: np.ndarray
    interval: Interval | None = None

    @property
    def bounds(self) -> Interval:
        """The interval, of one value where all is exact."""
        wide = self.value.astype(np.float64)
        return self.interval or Interval(wide, wide, np.asarray(False))

    @property
    def radius(self) -> np.ndarray:
        """How far from the exact value a kernel's may be; infinite where it may be anything."""
        b = self.bounds
        distance = np.maximum(b.high - self.value, self.value - b.low)
        return np.where(b.free, np.inf, np.where(b.low == b.high, 0.0, distance))

    def over(self, change: Callable[[np.ndarray], np.ndarray]) -> Approximate:
        """The values and each end of the interval as ``change`` arranges them."""
        if self.interval is None:
            return Approximate(change(self.value))
        b = self.interval
        ends = (np.broadcast_to(end, self.value.shape) for end in (b.low, b.high, b.free))
        return Approximate(change(self.value), Interval(*map(change, ends)))

    @property
    def is_whole(self) -> bool:
        """Whether these are whole numbers, which all kernels agree about."""
        return self.interval is None and self.value.dtype.kind == "i"


@dataclass(frozen=True)
class Approximation:
    """The meaning (:class:`spaces.language.tree.Meaning`) of expressions as :class:`Approximate`
    values at the points ``axes``, which has an array for each axis that broadcast.

    Stages that are known at some rows alone are in ``partial``: the dimension of the rows, and
    which they are.
    """

    rules: Rules
    arrays: Mapping[str, Approximate]
    axes: Mapping[str, np.ndarray]
    partial: Mapping[str, tuple[int, np.ndarray]] = field(default_factory=dict)

    def number(self, value: float) -> Approximate:
        """A literal; a whole one is an integer, as an index needs."""
        if value.is_integer() and abs(value) < 2**24:
            return Approximate(np.asarray(int(value)))
        return Approximate(np.asarray(value), self.rules.number(value))

    def axis(self, name: str) -> Approximate:
        """Whole numbers."""
        return Approximate(self.axes[name])

    def read(self, name: str, indices: Sequence[Approximate], outside: float | None) -> Approximate:
        """The entries, or ``outside``. Beyond borders where no condition holds, any entry."""
        array, at = self.arrays[name], [index.value for index in indices]
        if not at:
            return array
        extents, axes = array.value.shape, [self._axis(index) for index in at]
        if name in self.partial:
            dimension, rows = self.partial[name]
            at[dimension] = np.searchsorted(rows, at[dimension])
        if outside is None and None not in axes and len(set(axes)) == len(axes):
            beyond = any(i.max() >= n for i, n in zip(at, extents, strict=True))
            if not beyond:
                return array.over(lambda values: self._plain(values, axes, at))
        nearest = [np.clip(i, 0, n - 1) for i, n in zip(at, extents, strict=True)]
        found = array.over(lambda values: values[tuple(nearest)])
        if outside is None:
            return found
        within = reduce(np.logical_and, map(np.equal, at, nearest))
        constant = int(outside) if array.is_whole else outside
        return self.select(Approximate(within), found, Approximate(np.asarray(constant)))

    def _axis(self, index: np.ndarray) -> str | None:
        """The axis whose values an index is."""
        return next((name for name, values in self.axes.items() if values is index), None)

    def _plain(
        self, values: np.ndarray, axes: Sequence[str | None], at: Sequence[np.ndarray]
    ) -> np.ndarray:
        """What is at rising indices along each dimension; dimensions as those of the points."""
        for dimension, index in enumerate(at):
            if index.size < values.shape[dimension]:
                values = values.take(index.reshape(-1), dimension)
        names = list(self.axes)
        places = sorted(range(len(axes)), key=lambda place: names.index(str(axes[place])))
        shape = [self.axes[name].size if name in axes else 1 for name in names]
        return values.transpose(places).reshape(shape)

    def negation(self, inner: Approximate) -> Approximate:
        """Exact."""
        value = -inner.value
        return Approximate(value, inner.interval and self.rules.negation(inner.interval))

    def binary(self, operator: str, left: Approximate, right: Approximate) -> Approximate:
        """One operation and its rounding; none among whole numbers."""
        value = np.asarray(OPERATIONS[operator](left.value, right.value))
        if operator in ("//", "%") or (operator != "/" and left.is_whole and right.is_whole):
            return Approximate(value)
        return Approximate(value, self.rules.binary(operator, left.bounds, right.bounds))

    def comparison(self, operator: str, left: Approximate, right: Approximate) -> Approximate:
        """True or false; an interval where kernels may differ, from 0 (false) to 1 (true)."""
        value = np.asarray(OPERATIONS[operator](left.value, right.value))
        if left.interval is None and right.interval is None:
            return Approximate(value)
        a, b = left.bounds, right.bounds
        certain = _CERTAIN[operator](a, b)
        never = _CERTAIN[_OPPOSITE[operator]](a, b)
        return Approximate(value, Interval(certain, ~never, a.free | b.free))

    def select(
        self, condition: Approximate, then: Approximate, otherwise: Approximate
    ) -> Approximate:
        """One of two, or either where kernels may differ about the condition."""
        value = np.where(condition.value, then.value, otherwise.value)
        if condition.interval is None and then.interval is None and otherwise.interval is None:
            return Approximate(value)
        a, b = then.bounds, otherwise.bounds
        always, perhaps, free = condition.value, condition.value, np.asarray(False)
        if condition.interval is not None:
            always, perhaps = condition.interval.low, condition.interval.high
            free = condition.interval.free
        low = np.where(always, a.low, np.where(perhaps, np.minimum(a.low, b.low), b.low))
        high = np.where(always, a.high, np.where(perhaps, np.maximum(a.high, b.high), b.high))
        free = free | np.where(always, a.free, np.where(perhaps, a.free | b.free, b.free))
        return Approximate(value, Interval(low, high, free))

    def call(self, function: str, arguments: Sequence[Approximate]) -> Approximate:
        """A function and its error."""
        value = np.asarray(FUNCTIONS[function].reference(*(a.value for a in arguments)))
        return Approximate(value, self.rules.call(function, [a.bounds for a in arguments]))


_CERTAIN: Mapping[str, Callable[[Interval, Interval], Any]] = {
    "<": lambda a, b: a.high < b.low,
    "<=": lambda a, b: a.high <= b.low,
    ">": lambda a, b: a.low > b.high,
    ">=": lambda a, b: a.low >= b.high,
    "==": lambda a, b: (a.low == a.high) & (b.low == b.high) & (a.low == b.low),
    "!=": lambda a, b: (a.high < b.low) | (b.high < a.low),
}
_OPPOSITE = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
