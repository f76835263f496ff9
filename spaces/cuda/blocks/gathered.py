"""Factors whose elements are gathered.

An element's place is an offset of the row (or column) plus an offset of the depth. Rows, columns
and depth may each number the points of several axes, the last one the fastest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Strided, strided
from tilewright.spaces.derivation.products.addresses import Address
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import Gather, extent

MOST = 2**31
"""A bound of the elements of arrays, and of rows, columns and terms: 32 bits count them."""


@dataclass(frozen=True)
class Gathered:
    """The way to a factor's elements; ``width`` are the axes of its rows or columns.

    The offset leaves out what depends on the ``batch``, which is part of the factor's pointer. If a
    table chooses the rows, it is :attr:`gather`.
    """

    place: Address
    batch: tuple[Part, ...]
    width: tuple[Part, ...]
    depth: tuple[Part, ...]
    gather: Gather | None = None

    @property
    def indices(self) -> tuple[Index, ...]:
        """The offset, then the indices that are bounded."""
        offset = self.place.offset.without(part.name for part in self.batch)
        return (offset, *(bound.index for bound in self.place.bounds))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows or columns, and terms."""
        return extent(self.width), extent(self.depth)

    @property
    def extents(self) -> tuple[int, ...]:
        """The upper bounds of the bounded indices."""
        return tuple(bound.extent for bound in self.place.bounds)

    def of_width(self, number: Index, batch: Index, entry: Index) -> list[Index]:
        """Return the parts of :attr:`indices` that depend on a row or column and the product.

        They include constants; ``entry`` is that of the table, if there is one.
        """
        values = {**digits(self.batch, batch), **digits(self.width, number)}
        if self.gather:
            values[self.gather.entry.formula] = entry
        return [at(index, values) + index.constant for index in self.indices]

    def of_depth(self, term: Index) -> list[Index]:
        """Return the parts of :attr:`indices` that depend on a term."""
        values = digits(self.depth, term)
        return [at(index, values) for index in self.indices]

    @cached_property
    def deep(self) -> bool:
        """True if tiles run along the depth.

        That is where more elements lie side by side, or else where neighbours are closer.
        """
        along = [(self._run(p), -self._last_step(p)) for p in (self.width, self.depth)]
        return along[1] > along[0]

    @property
    def run(self) -> int:
        """Elements side by side in memory, all within or all beyond the borders.

        That holds from each multiple of a power of two that divides this number.
        """
        return self._run(self.depth if self.deep else self.width)

    @property
    def strided(self) -> Strided | None:
        """The layout of one product's matrix, its axis of stride 1 last; None if it is no
        matrix."""
        sides = (self.width, self.depth) if self.deep else (self.depth, self.width)
        steps = [self.place.step(parts) for parts in sides]
        first, second = steps
        if self.place.bounds or self.place.offset.constant or first is None or second != 1:
            return None
        return strided((extent(sides[0]), extent(sides[1])), (first, 1)) if first >= 0 else None

    def _run(self, parts: Sequence[Part]) -> int:
        return run_of(self.place, parts)

    def _last_step(self, parts: Sequence[Part]) -> int:
        """Return the elements between neighbours along the fastest axis of more than one point."""
        longer = [part for part in parts if part.extent > 1]
        return self.place.offset.coefficient(longer[-1].name) if longer else MOST


def digits(parts: Sequence[Part], number: Index) -> dict[str, Index]:
    """Return the index along each axis of ``number`` in all of them.

    That of the first axis may be beyond its extent.
    """
    values = {}
    for part in reversed(parts[1:]):
        values[part.name] = number % part.extent
        number = number // part.extent
    return {**values, **{part.name: number for part in parts[:1]}}


def at(index: Index, values: Mapping[str, Index]) -> Index:
    """Return the part of an index that depends on axes and entries with ``values``, without its
    constant."""
    known = ((values.get(atom.formula), c) for atom, c in index.terms)
    return sum((value * c for value, c in known if value is not None), Index())


def run_of(place: Address, parts: Sequence[Part]) -> int:
    """Return the elements that lie side by side along ``parts``.

    They do so from each multiple of a power of two that divides this number; it is 1 where
    neighbours are apart, or one may lie beyond a border and the other not.
    """
    bounded = {name for bound in place.bounds for name in bound.index.names}
    run, names = 1, frozenset[str]()
    for part in reversed([part for part in parts if part.extent > 1]):
        if place.offset.coefficient(part.name) != run or part.name in bounded:
            break
        run, names = run * part.extent, names | {part.name}
    return gcd(run, place.offset.without(names).divisor)
