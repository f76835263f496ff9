"""Approximate values (:mod:`spaces.derivation.rounding.approximate`) as arrays of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from spaces.derivation.rounding.approximate import Approximate, Approximation
from spaces.numerics.interval import Interval


@dataclass(frozen=True)
class ApproximateArrays(Approximation):
    """At the points ``axes``, which has an array for each axis that broadcast.

    Stages that are known at some rows alone are in ``partial``: the dimension of the rows, and
    which they are.
    """

    arrays: Mapping[str, Approximate]
    axes: Mapping[str, np.ndarray]
    partial: Mapping[str, tuple[int, np.ndarray]] = field(default_factory=dict)

    def axis(self, name: str) -> Approximate:
        """The grid's."""
        return Approximate(self.axes[name])

    def entry(self, name: str, indices: Sequence[Any]) -> tuple[Approximate, Any]:
        """By a view, where indices are axes."""
        array = self.arrays[name]
        if not indices:
            return array, True
        axes = [self._axis(index) for index in indices]
        at = [np.asarray(index).astype(np.int64, copy=False) for index in indices]
        extents = array.value.shape
        if name in self.partial:
            dimension, rows = self.partial[name]
            at[dimension] = np.searchsorted(rows, at[dimension])
        are_inside = all(i.max() < n for i, n in zip(at, extents, strict=True))
        if None not in axes and len(set(axes)) == len(axes) and are_inside:
            return over(array, lambda values: self._plain(values, axes, at)), True
        nearest = [np.clip(i, 0, n - 1) for i, n in zip(at, extents, strict=True)]
        within = reduce(np.logical_and, map(np.equal, at, nearest))
        return over(array, lambda values: values[tuple(nearest)]), within

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


def over(x: Approximate, change: Callable[[np.ndarray], np.ndarray]) -> Approximate:
    """The values and each end of the interval as ``change`` arranges them."""
    value = np.asarray(x.value)
    if x.interval is None:
        return Approximate(change(value))
    b = x.interval
    low, free = (change(np.broadcast_to(end, value.shape)) for end in (b.low, b.free))
    high = low if b.low is b.high else change(np.broadcast_to(b.high, value.shape))
    return Approximate(change(value), Interval(low, high, free))
