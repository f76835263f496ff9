"""Approximate values (:mod:`spaces.derivation.rounding.approximate`) as arrays of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from tilewright.spaces.derivation.rounding.approximate import Approximate, Approximation
from tilewright.spaces.derivation.rounding.rows import Places
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.numerics.interval import Interval


@dataclass(frozen=True)
class ApproximateArrays(Approximation):
    """Evaluates at the points ``axes``, which has an array for each axis that broadcast.

    ``arrays`` are stages of ``program``, and operands in dtypes of their own. Those that are known
    at some places alone are in ``partial``.
    """

    arrays: Mapping[str, Approximate]
    axes: Mapping[str, np.ndarray]
    program: Program
    partial: Mapping[str, Places] = field(default_factory=dict)

    def axis(self, name: str) -> Approximate:
        """Return the grid's."""
        return Approximate(self.axes[name])

    def entry(self, name: str, indices: Sequence[Any]) -> tuple[Approximate, Any]:
        """Read by views, where each index differs along another dimension of the points."""
        array = self.arrays[name]
        if not indices:
            return self._wide(name, array), True
        at = [np.asarray(index).astype(np.int64, copy=False) for index in indices]
        nearest = [np.clip(i, 0, n - 1) for i, n in zip(at, self._shape(name), strict=True)]
        are_inside = all(map(np.array_equal, at, nearest))
        within = True if are_inside else reduce(np.logical_and, map(np.equal, at, nearest))
        for dimension, places in self.partial.get(name, {}).items():
            nearest[dimension] = np.searchsorted(places, nearest[dimension])
        along = [_along(index) for index in nearest]
        if _are_apart(along):
            found = over(array, lambda values: self._apart(values, nearest, along))
        else:
            found = over(array, lambda values: values[tuple(nearest)])
        return self._wide(name, found), within

    def kept(self, stage: Stage) -> ApproximateArrays:
        """Evaluate at the points of the axes that a stage keeps alone."""
        axes = {
            a: v.reshape(v.shape[: len(stage.axes)])
            for a, v in self.axes.items()
            if a in stage.axes
        }
        return replace(self, axes=axes)

    def _shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the whole array."""
        if name in self.program.operand:
            return self.program.operand[name].shape
        return self.program.shape(self.program.stage[name].axes)

    def _wide(self, name: str, found: Approximate) -> Approximate:
        """Widen values that were read to float64 or int64."""
        if name not in self.program.operand:
            return found
        element = self.program.operand[name].element
        if element.is_integer:
            return Approximate(found.value.astype(np.int64))
        wide = found.value.astype(np.float64)
        return Approximate(wide, self.rules.given(wide, element))

    def _apart(
        self, values: np.ndarray, at: Sequence[np.ndarray], along: Sequence[Sequence[int]]
    ) -> np.ndarray:
        shares = [index.size / extent for index, extent in zip(at, values.shape, strict=True)]
        # the least of each dimension first: rows of a table may be taken many times
        for dimension in sorted(range(len(at)), key=shares.__getitem__):
            values = _taken(values, at[dimension].reshape(-1), dimension)
        shape = [1] * len(self.axes)
        for dimension, places in enumerate(along):
            for place in places:
                shape[place] = values.shape[dimension]
        order = sorted(range(len(along)), key=lambda dimension: [*along[dimension], -1][0])
        return values.transpose(order).reshape(shape)


def _along(index: np.ndarray) -> list[int]:
    """Return the dimensions of the points along which an index differs."""
    return [place for place, extent in enumerate(index.shape) if extent > 1]


def _are_apart(along: Sequence[Sequence[int]]) -> bool:
    """Tell whether each index varies along at most one dimension, and no two along the same."""
    every = [place for places in along for place in places]
    return max(map(len, along)) <= 1 and len(set(every)) == len(every)


def _taken(values: np.ndarray, at: np.ndarray, dimension: int) -> np.ndarray:
    """Return the entries at places along a dimension: a view where these follow each other."""
    if not np.array_equal(at, np.arange(at[0], at[0] + at.size)):
        return values.take(at, dimension)
    return values[(*[slice(None)] * dimension, slice(at[0], at[0] + at.size))]


def over(x: Approximate, change: Callable[[np.ndarray], np.ndarray]) -> Approximate:
    """Return the values and each end of the interval as ``change`` arranges them."""
    value = np.asarray(x.value)
    if x.interval is None:
        return Approximate(change(value))
    b = x.interval
    low, free = (change(np.broadcast_to(end, value.shape)) for end in (b.low, b.free))
    high = low if b.low is b.high else change(np.broadcast_to(b.high, value.shape))
    return Approximate(change(value), Interval(low, high, free))


def unknown(shape: tuple[int, ...], kind: type[np.generic]) -> Approximate:
    """Return an array of values of some ``kind`` that are zeros so far, to be written."""
    low, high = np.zeros(shape), np.zeros(shape)
    return Approximate(np.zeros(shape, kind), Interval(low, high, np.zeros(shape, bool)))


def write(x: Approximate, part: tuple[slice, ...], found: Approximate) -> None:
    """Write values and each end of the interval into a part of an :func:`unknown` array."""
    x.value[part] = found.value
    ends = found.interval or Interval(found.value, found.value, False)
    assert x.interval is not None
    for end in ("low", "high", "free"):
        getattr(x.interval, end)[part] = getattr(ends, end)
