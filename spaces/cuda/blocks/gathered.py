"""Factors whose elements are reached through places: an offset of the row (or column) plus an
offset of the depth. Rows, columns and depth may count the points of several parts, the last part
the fastest."""

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
"""Elements of an array are fewer, and so are rows, columns and terms: 32 bits count them."""


@dataclass(frozen=True)
class Gathered:
    """How a factor is reached: ``width`` are the parts of its rows or columns. The offset leaves
    out what depends on the ``batch``, which the factor's pointer has in it. Rows may be those that
    a table chooses: then :attr:`gather` says so."""

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
        """What the bounded indices are below."""
        return tuple(bound.extent for bound in self.place.bounds)

    def of_width(self, number: Index, batch: Index, entry: Index) -> list[Index]:
        """What :attr:`indices` have of a row or column and of the product, constants included;
        ``entry`` is that of the table, if there is one."""
        values = {**digits(self.batch, batch), **digits(self.width, number)}
        if self.gather:
            values[self.gather.entry.formula] = entry
        return [at(index, values) + index.constant for index in self.indices]

    def of_depth(self, term: Index) -> list[Index]:
        """What they have of a term."""
        values = digits(self.depth, term)
        return [at(index, values) for index in self.indices]

    @cached_property
    def deep(self) -> bool:
        """Whether tiles run along the depth: where more elements lie side by side, or else where
        neighbours are closer."""
        along = [(self._run(p), -self._last_step(p)) for p in (self.width, self.depth)]
        return along[1] > along[0]

    @property
    def run(self) -> int:
        """Elements side by side, all within or all beyond the borders, from any multiple of a power
        of two that divides this on."""
        return self._run(self.depth if self.deep else self.width)

    @property
    def strided(self) -> Strided | None:
        """The layout of one product's matrix, its axis of stride 1 last; None if that is no
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
        """Elements between neighbours along the fastest part that has more than one."""
        longer = [part for part in parts if part.extent > 1]
        return self.place.offset.coefficient(longer[-1].name) if longer else MOST


def digits(parts: Sequence[Part], number: Index) -> dict[str, Index]:
    """The values of parts that together have ``number``; that of the first may be beyond its
    extent."""
    values = {}
    for part in reversed(parts[1:]):
        values[part.name] = number % part.extent
        number = number // part.extent
    return {**values, **{part.name: number for part in parts[:1]}}


def at(index: Index, values: Mapping[str, Index]) -> Index:
    """What an index has of the parts and entries whose formulas have values, without its
    constant."""
    known = ((values.get(atom.formula), c) for atom, c in index.terms)
    return sum((value * c for value, c in known if value is not None), Index())


def run_of(place: Address, parts: Sequence[Part]) -> int:
    """Elements side by side along ``parts``, from any multiple of a power of two that divides this
    on; 1 where neighbours are apart, or one may lie beyond a border and the other not."""
    bounded = {name for bound in place.bounds for name in bound.index.names}
    run, names = 1, frozenset[str]()
    for part in reversed([part for part in parts if part.extent > 1]):
        if place.offset.coefficient(part.name) != run or part.name in bounded:
            break
        run, names = run * part.extent, names | {part.name}
    return gcd(run, place.offset.without(names).divisor)
