"""The values of expressions at some points of a program's axes, as arrays of NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from tilewright.spaces.language.evaluation import Elementwise
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Points(Elementwise):
    """The meaning (:class:`spaces.language.tree.Meaning`) of an expression at the points ``axes``,
    in the floating-point dtype of ``arrays``.

    ``axes`` has an array of integers for each axis, which broadcast against each other. A read
    beyond its array's borders gives ``outside``, and some element where a condition keeps the
    result from being used.
    """

    arrays: Mapping[str, np.ndarray]
    axes: Mapping[str, np.ndarray]

    def value(self, expression: Expression) -> np.ndarray:
        """Return the values, of the shape that the axes in use broadcast to."""
        with np.errstate(all="ignore"):
            return np.asarray(expression.fold(self))

    def number(self, value: float) -> Any:
        """Keep a number of Python, which takes the dtype of what it meets."""
        return int(value) if value.is_integer() else value

    def axis(self, name: str) -> Any:
        """Return the axis' integers."""
        return self.axes[name]

    def read(self, name: str, indices: Sequence[Any], outside: float | None) -> Any:
        """Return the elements, or ``outside``."""
        array = self.arrays[name]
        if not indices:
            return array
        pairs = zip(indices, array.shape, strict=True)
        nearest = [np.minimum(np.maximum(index, 0), extent - 1) for index, extent in pairs]
        found = array[tuple(nearest)]
        if outside is None:
            return found
        within = reduce(np.logical_and, map(np.equal, indices, nearest))
        return np.where(within, found, array.dtype.type(outside))
