"""Walks along a row, and the vectors that they visit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial


@dataclass(frozen=True)
class Vector:
    """The place of one vector: its index along each span of columns, in the row that is ``shift``
    rows after the row at hand.

    Lanes run along the last span, of columns or of rows; ``left`` is the number of points of it
    from this vector on, as C text, or None if there is one for each lane.
    """

    columns: tuple[Index, ...]
    left: str | None = None
    shift: int = 0

    def offset(self, steps: Sequence[int]) -> Index:
        """Return the elements from the row's first column, for an array with these steps."""
        total = Index()
        for position, step in zip(self.columns, steps, strict=True):
            total = total + position * step
        return total


Tile = Callable[[Sequence[Vector]], Sequence[str]]
"""Returns the C lines for some vectors at a time."""


@dataclass(frozen=True)
class Walk:
    """A walk along the columns: tiles of ``unroll`` vectors of ``lanes``, then single vectors, the
    last of which may be partly filled. ``extents`` are those of the spans."""

    extents: tuple[int, ...]
    lanes: int
    unroll: int

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.lanes * self.unroll

    @property
    def tiles(self) -> int:
        """Whole tiles along the last span."""
        return self.extents[-1] // self.width

    @property
    def turns(self) -> int:
        """The number of tiles and single vectors that a row's states take in."""
        *outer, last = self.extents
        return prod(outer) * (self.tiles + ceil_div(last - self.tiles * self.width, self.lanes))

    @property
    def short(self) -> int | None:
        """The number of lanes that ever hold a column; None if all do."""
        return self.extents[-1] if self.extents[-1] < self.lanes else None

    def first(self, tile: Tile) -> list[str]:
        """Return the lines for the first tile, or for the one vector of a row that is no longer."""
        start = tuple(Index() for _ in self.extents)
        return _block(
            tile(self._vectors(start, self.unroll) if self.tiles else [self._part(start)])
        )

    def lines(self, tile: Tile, after_first: bool = False) -> list[str]:
        """Return the lines for all tiles, or for those after the first."""
        *outer, _ = self.extents
        return repeat(*outer, 1).emit(
            0, lambda at: self._last_span(tuple(at[:-1]), tile, after_first), prefix="c"
        )

    def _last_span(self, outer: tuple[Index, ...], tile: Tile, after_first: bool) -> list[str]:
        extent = self.extents[-1]
        skipped = int(after_first)
        lines: list[str] = []
        if self.tiles > skipped:
            tiles = repeat(self.tiles - skipped) * spatial(self.width)
            lines += tiles.emit(
                0,
                lambda at: _block(tile(self._vectors((*outer, *at), self.unroll))),
                base=(skipped * self.width,),
                prefix="j",
            )
        done = max(self.tiles, skipped) * self.width
        rest = ceil_div(extent - done, self.lanes) if extent > done else 0
        if rest:
            vectors = repeat(rest) * spatial(self.lanes)
            lines += vectors.emit(
                0, lambda at: _block(tile([self._part((*outer, *at))])), base=(done,), prefix="k"
            )
        return lines

    def _vectors(self, start: tuple[Index, ...], count: int) -> list[Vector]:
        return [Vector((*start[:-1], start[-1] + u * self.lanes)) for u in range(count)]

    def _part(self, start: tuple[Index, ...]) -> Vector:
        return Vector(start, f"{self.extents[-1]} - {index(start[-1])}")


def _block(lines: Sequence[str]) -> list[str]:
    return ["{", *(f"  {line}" for line in lines), "}"]
