"""An array in memory: its element type, its shape, and the order in which its dimensions lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tilewright.spaces.dtypes import DType, dtype


@dataclass(frozen=True)
class Array:
    """One array in memory.

    ``shape`` gives the extent of each dimension, and ``order`` lists the dimensions from the
    slowest in memory to the fastest: ``(0, 1)`` is row-major and ``(1, 0)`` column-major.
    ``leading`` is the distance in elements between neighbours along the dimension that is the
    second fastest, if the array is a slice of a larger one.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    leading: int | None = None

    @property
    def element(self) -> DType:
        """The element type."""
        return dtype(self.dtype)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements; the gaps of a slice are not counted."""
        return self.size * self.element.bytes

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements between neighbours along each dimension."""
        strides, step = [0] * len(self.shape), 1
        for place, dimension in enumerate(reversed(self.order)):
            strides[dimension] = step
            step *= self.leading if place == 0 and self.leading else self.shape[dimension]
        return tuple(strides)

    @property
    def span_bytes(self) -> int:
        """Bytes from the first to the last, including the gaps of a slice."""
        steps = zip(self.shape, self.strides, strict=True)
        return (1 + sum((extent - 1) * step for extent, step in steps)) * self.element.bytes

    def array(self, values: np.ndarray) -> np.ndarray:
        """``values`` (of :attr:`shape`) in this array's dtype, memory order and leading
        dimension."""
        ordered = self.element.cast(values.transpose(self.order))
        if self.leading is not None:
            whole = np.zeros((*ordered.shape[:-1], self.leading), ordered.dtype)
            whole[..., : ordered.shape[-1]] = ordered
            ordered = whole[..., : ordered.shape[-1]]
        return ordered.transpose(np.argsort(self.order))
