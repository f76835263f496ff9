"""Layouts: where in memory each element of a tile lives.

The twin of ``spaces.algebra.mapping`` for memory. A layout takes a point of a grid of ``shape`` to
an offset in elements, in Python (:meth:`Layout.offset`) and in C (:meth:`Layout.emit`). Strided,
padded and XOR-swizzled layouts are atoms, and ``f * g`` lays out tiles of ``g`` as ``f`` says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from operator import mul

from tilewright.spaces.algebra.atoms import Variable
from tilewright.spaces.algebra.index import Index, index

REMEMBERED = 1024  # strided layouts, since each is asked for by all that reads or writes an array


@dataclass(frozen=True)
class Layout(ABC):
    """Grid point to offset; the offsets of all points lie in ``range(size)``."""

    shape: tuple[int, ...]
    size: int

    @abstractmethod
    def index(self, indices: Sequence[Index]) -> Index:
        """Return the offset as an index expression of indices inside the shape."""

    def offset(self, *indices: int) -> int:
        """Return the offset of one element, in elements."""
        self._check_point(indices)
        value = self.index([index(i) for i in indices]).value
        assert value is not None  # constants give a constant
        return value

    def emit(self, *indices: Index | int | str) -> str:
        """C text of the offset. Indices in text are taken to be inside the shape."""
        self._check_rank(len(indices))
        return self.index(
            [index(i, extent) for i, extent in zip(indices, self.shape, strict=True)]
        ).text

    def __mul__(self, inner: Layout) -> Tiled:
        self._check_rank(len(inner.shape))
        shape = tuple(f * g for f, g in zip(self.shape, inner.shape, strict=True))
        return Tiled(shape, self.size * inner.size, self, inner)

    def _check_point(self, indices: Sequence[int]) -> None:
        self._check_rank(len(indices))
        for i, extent in zip(indices, self.shape, strict=True):
            if not 0 <= i < extent:
                raise ValueError(f"point {indices} is outside of the shape {self.shape}")

    def _check_rank(self, rank: int) -> None:
        if rank != len(self.shape):
            raise ValueError(f"rank {rank} does not fit the shape {self.shape}")


@dataclass(frozen=True)
class Strided(Layout):
    """``offset = sum(index * stride)``; ``size`` may leave padding at the end."""

    strides: tuple[int, ...]

    def index(self, indices: Sequence[Index]) -> Index:
        """Return the sum of index times stride."""
        return sum((i * s for i, s in zip(indices, self.strides, strict=True)), Index())

    def offset(self, *indices: int) -> int:
        """The sum of index times stride, without the detour over index expressions: most of a
        kernel's text is made of these."""
        self._check_point(indices)
        return sum(map(mul, indices, self.strides))

    def padded(self, rank: int, amount: int) -> Strided:
        """Return ``amount`` unused elements, each as far apart as those of ``rank``, after every
        run along ``rank``: the ranks slower than it move apart. For dense layouts."""
        run = self.strides[rank] * self.shape[rank]
        longer = self.strides[rank] * (self.shape[rank] + amount)
        slower = [stride >= run for stride in self.strides]
        strides = [
            stride // run * longer if slow else stride
            for stride, slow in zip(self.strides, slower, strict=True)
        ]
        return Strided(self.shape, self.size // run * longer, tuple(strides))


@dataclass(frozen=True)
class Tiled(Layout):
    """Tiles of ``inner`` one after the other, in the places that ``outer`` gives them."""

    outer: Layout
    inner: Layout

    def index(self, indices: Sequence[Index]) -> Index:
        """Return the tile's place, and the place inside it."""
        pairs = list(zip(indices, self.inner.shape, strict=True))
        tile = self.outer.index([i // extent for i, extent in pairs])
        return tile * self.inner.size + self.inner.index([i % extent for i, extent in pairs])


@dataclass(frozen=True)
class Panels(Layout):
    """Rows of ``width`` neighbouring columns, one after the other, and then those of the next
    columns. The first column of any panel may be taken for the first of all."""

    width: int

    @property
    def panel(self) -> int:
        """Elements of a panel."""
        return self.shape[0] * self.width

    def index(self, indices: Sequence[Index]) -> Index:
        """Return the panel's place, the row's, and that of the column in it."""
        row, column = indices
        return column // self.width * self.panel + row * self.width + column % self.width


@dataclass(frozen=True)
class Swizzled(Layout):
    """``plain`` with bits of its offset exchanged, so that columns spread over memory banks.

    ``offset ^ (((offset >> (base + shift)) & (2**bits - 1)) << base)``: runs of ``2**base``
    elements stay together. A bijection, since ``shift >= bits`` keeps the key out of the change.
    """

    plain: Layout
    bits: int
    base: int
    shift: int

    def index(self, indices: Sequence[Index]) -> Index:
        """Return the plain offset, its bits below the key XORed with it.

        The bits above stay outside, so that a compiler finds the XOR once for many offsets."""
        offset = self.plain.index(indices)
        key = offset // 2 ** (self.base + self.shift) % 2**self.bits * 2**self.base
        if key.value == 0:
            return offset
        block = 2 ** (self.base + self.bits)
        high, low = offset // block * block, offset % block
        if low.value is not None and key.value is not None:
            return high + (low.value ^ key.value)
        return high + Index(((Variable(f"{low} ^ {key}", block), 1),))


@dataclass(frozen=True)
class Permuted(Layout):
    """``plain`` with its ranks in another order: rank ``i`` is rank ``order[i]`` of ``plain``."""

    plain: Layout
    order: tuple[int, ...]

    def index(self, indices: Sequence[Index]) -> Index:
        """Return the plain layout's offset of the indices put back in order."""
        return self.plain.index([indices[self.order.index(r)] for r in range(len(self.order))])


def strided(shape: Sequence[int], strides: Sequence[int]) -> Strided:
    """Return the layout with the given distances in elements; a stride of 0 repeats elements."""
    return _strided(tuple(shape), tuple(strides))


@lru_cache(maxsize=REMEMBERED)
def _strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Strided:
    if len(shape) != len(strides) or any(n < 1 for n in shape) or any(s < 0 for s in strides):
        raise ValueError(f"shape {shape} and strides {strides} do not fit each other")
    size = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return Strided(shape, size, strides)


def panels(rows: int, columns: int, width: int) -> Panels:
    """Return the layout of ``columns`` columns, filled up to whole panels of ``width``."""
    whole = -(-columns // width) * width
    return Panels((rows, whole), rows * whole, width)


def row_major(*shape: int) -> Strided:
    """Return the dense layout whose last index runs fastest."""
    return strided(shape, [prod(shape[rank + 1 :]) for rank in range(len(shape))])


def column_major(*shape: int) -> Strided:
    """Return the dense layout whose first index runs fastest."""
    return strided(shape, [prod(shape[:rank]) for rank in range(len(shape))])


def swizzled(plain: Layout, bits: int, base: int, shift: int) -> Swizzled:
    """Return ``plain`` with an XOR swizzle on its offsets, see :class:`Swizzled`."""
    if not 0 < bits <= shift or base < 0:
        raise ValueError(f"swizzle bits={bits} base={base} shift={shift}: needs 0 < bits <= shift")
    block = 2 ** (base + bits)
    return Swizzled(plain.shape, -(-plain.size // block) * block, plain, bits, base, shift)


def permuted(plain: Layout, *order: int) -> Permuted:
    """``plain`` seen with its ranks in ``order``: ``permuted(f, 1, 0)`` is the transpose."""
    if sorted(order) != list(range(len(plain.shape))):
        raise ValueError(f"order {order} is no permutation of the ranks of {plain.shape}")
    return Permuted(tuple(plain.shape[r] for r in order), plain.size, plain, order)
