"""An array in memory: its element type, its shape, and the order in which its dimensions lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tilewright.spaces.dtypes import DType, dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.low_bit.packing import pack_codes, packed_bytes, unpack_values
from tilewright.spaces.workloads.packing import PANEL, TERMS, pack, packed_shape, unpack


@dataclass(frozen=True)
class Array:
    """One array in memory.

    ``shape`` gives the extent of each dimension, and ``order`` lists the dimensions from the
    slowest in memory to the fastest: ``(0, 1)`` is row-major and ``(1, 0)`` column-major.
    ``leading`` is the distance in elements between neighbours along the dimension that is the
    second fastest, if the array is a slice of a larger one. A ``packed`` matrix of (columns, depth)
    lies in panels (:mod:`spaces.workloads.packing`), and one of elements of up to 8 bits in tiles
    of codes (:mod:`spaces.low_bit`); :attr:`stored` is the array that holds it.
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

    def __post_init__(self) -> None:
        if not self.packed and dtype(self.dtype).coded:
            raise InputError(
                f"{self.name} is {self.dtype}, of which arrays are packed; "
                f"allowed: {self.name}: {self.dtype}[rows, depth](packed)"
            )

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
        stored = self.stored
        return stored.size * stored.element.bytes

    def bytes_of(self, elements: int) -> int:
        """Return the bytes that so many elements take: all bytes for all elements."""
        if self.packed:
            return self.bytes if elements >= self.size else -(-elements * self.element.bits // 8)
        return elements * self.element.bytes

    @property
    def coded(self) -> bool:
        """Tell whether the array is one of packed codes."""
        return self.packed and self.dtype not in TERMS

    @cached_property
    def stored(self) -> Array:
        """The dense array in memory that holds a packed one; any other array itself."""
        if not self.packed:
            return self
        if self.coded:
            return Array(self.name, "uint8", (packed_bytes(self.shape, self.dtype),), (0,))
        shape = packed_shape(self.shape[0], self.shape[1], TERMS[self.dtype])
        return Array(self.name, self.dtype, shape, tuple(range(len(shape))))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements between neighbours along each dimension; in words within a panel of
        a packed array, and as if they lay in rows, where they are codes."""
        if self.packed and not self.coded:
            return (1, PANEL)
        if self.steps:
            return self.steps
        strides, step = [0] * len(self.shape), 1
        for place, dimension in enumerate(reversed(self.order)):
            strides[dimension] = step
            step *= self.leading if place == 0 and self.leading else self.shape[dimension]
        return tuple(strides)

    def is_outermost(self, dimension: int) -> bool:
        """Tell whether no dimension of several elements is slower in memory than this one: places
        of elements then do not depend on its extent."""
        slower = self.order[: self.order.index(dimension)]
        return all(self.shape[each] == 1 for each in slower)

    @property
    def span_bytes(self) -> int:
        """Bytes from the first to the last, including the gaps of a slice."""
        if self.packed:
            return self.bytes
        steps = zip(self.shape, self.strides, strict=True)
        return (1 + sum((extent - 1) * step for extent, step in steps)) * self.element.bytes

    def array(self, values: np.ndarray) -> np.ndarray:
        """Return ``values`` (of :attr:`shape`) in this array's dtype, memory order and leading
        dimension; those of a packed one as they are stored, unless they are codes, whose values
        stay as they are (see :meth:`given`)."""
        if self.packed and not self.coded:
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
        one; the values of codes also as they are."""
        if self.coded:
            is_stored = array.shape == self.stored.shape
            return unpack_values(array, self.shape, self.dtype) if is_stored else array
        return np.asarray(unpack(array, self.shape[0], self.shape[1]) if self.packed else array)

    def given(self, array: np.ndarray) -> np.ndarray:
        """Return an ``array`` of this one's elements as kernels take it: values of codes packed."""
        return pack_codes(array, self.dtype) if self.coded else array
