"""An array in memory: its element type, its shape, and the order in which its dimensions lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tilewright.spaces.dtypes import DType, dtype
from tilewright.spaces.workloads.packing import PANEL, TERMS, pack, packed_shape, unpack


@dataclass(frozen=True)
class Array:
    """One array in memory.

    ``shape`` gives the extent of each dimension, and ``order`` lists the dimensions from the
    slowest in memory to the fastest: ``(0, 1)`` is row-major and ``(1, 0)`` column-major.
    ``leading`` is the distance in elements between neighbours along the dimension that is the
    second fastest, if the array is a slice of a larger one. A ``packed`` matrix of (columns, depth)
    lies in panels (:mod:`spaces.workloads.packing`); :attr:`stored` is the array that holds it.
    ``steps`` are the strides, in elements, of an array whose elements are every so many of a larger
    one; no program of a user has such an array.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    leading: int | None = None
    packed: bool = False
    steps: tuple[int, ...] | None = None

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
        """Bytes of all elements and of what fills panels; the gaps of a slice are not counted."""
        return (self.stored if self.packed else self).size * self.element.bytes

    @cached_property
    def stored(self) -> Array:
        """The dense array in memory that holds a packed one; any other array itself."""
        if not self.packed:
            return self
        shape = packed_shape(self.shape[0], self.shape[1], TERMS[self.dtype])
        return Array(self.name, self.dtype, shape, tuple(range(len(shape))))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements between neighbours along each dimension; in words within a panel of
        a packed array."""
        if self.packed:
            return (1, PANEL)
        if self.steps:
            return self.steps
        strides, step = [0] * len(self.shape), 1
        for place, dimension in enumerate(reversed(self.order)):
            strides[dimension] = step
            step *= self.leading if place == 0 and self.leading else self.shape[dimension]
        return tuple(strides)

    @property
    def span_bytes(self) -> int:
        """Bytes from the first to the last, including the gaps of a slice."""
        if self.packed:
            return self.bytes
        steps = zip(self.shape, self.strides, strict=True)
        return (1 + sum((extent - 1) * step for extent, step in steps)) * self.element.bytes

    def array(self, values: np.ndarray) -> np.ndarray:
        """Return ``values`` (of :attr:`shape`) in this array's dtype, memory order and leading
        dimension; those of a packed one as they are stored."""
        if self.packed:
            stored: np.ndarray = pack(self.element.cast(values))
            return stored
        ordered = self.element.cast(values.transpose(self.order))
        if self.leading is not None:
            whole = np.zeros((*ordered.shape[:-1], self.leading), ordered.dtype)
            whole[..., : ordered.shape[-1]] = ordered
            ordered = whole[..., : ordered.shape[-1]]
        return ordered.transpose(np.argsort(self.order))

    def plain(self, array: np.ndarray) -> np.ndarray:
        """Return the elements of an ``array`` that lies as this one does, in the shape of this
        one."""
        return np.asarray(unpack(array, *self.shape) if self.packed else array)
