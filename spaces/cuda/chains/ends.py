"""The C text of where a call's keys, rows and products end: numbers, or made of an open extent."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.spaces.cuda.abi import OPEN_EXTENT, open_count, open_tiles
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.kernel import OpenGrid


@dataclass(frozen=True)
class End:
    """The end of the points of ``parts``, of which calls give the extent of an axis if it
    ``is_open``: the slowest part's."""

    parts: tuple[Part, ...]
    is_open: bool = False

    @property
    def most(self) -> int:
        """The most points."""
        return prod(part.extent for part in self.parts)

    @property
    def each(self) -> int:
        """Points of each of the slowest part."""
        return self.most // self.parts[0].extent if self.parts else 1

    @property
    def count(self) -> str:
        """C text of the number of points; one word, or in parentheses."""
        if not self.is_open:
            return str(self.most)
        return OPEN_EXTENT if self.each == 1 else f"({open_count(self.each)})"

    @property
    def last(self) -> str:
        """C text of the last point."""
        return f"{self.count} - 1" if self.is_open else str(self.most - 1)

    def is_whole(self, tile: int) -> bool:
        """Return true if there is a whole number of tiles, whatever a call gives."""
        return (self.each if self.is_open else self.most) % tile == 0

    def tiles(self, tile: int) -> str:
        """Return C text of the number of tiles; one word, or in parentheses."""
        if not self.is_open:
            return str(-(-self.most // tile))
        return str(open_tiles(tile, self.most, self.each))

    def last_tile(self, tile: int) -> str:
        """Return C text of the number of the last tile."""
        if not self.is_open:
            return str((self.most - 1) // tile)
        return (open_tiles(tile, self.most, self.each) - 1).text


def keys_of(view: RowsAndKeys) -> End:
    """Return the end of the keys."""
    return _end(view, (view.key,))


def rows_of(view: RowsAndKeys) -> End:
    """Return the end of the rows of each product."""
    return _end(view, view.rows)


def products_of(view: RowsAndKeys) -> End:
    """Return the end of the products."""
    return _end(view, view.batch)


def open_grid(view: RowsAndKeys, row_tile: int, blocks: int) -> OpenGrid | None:
    """Return how a grid depends on the open extent, with so many ``blocks`` for each tile of rows;
    None if it does not."""
    rows, products = rows_of(view), products_of(view)
    if rows.is_open:
        return OpenGrid(row_tile, products.most * blocks, rows.each)
    if products.is_open:
        return OpenGrid(1, -(-rows.most // row_tile) * blocks, products.each)
    return None


def open_parameter(view: RowsAndKeys) -> list[str]:
    """Return the last parameter of functions, if calls give an extent."""
    return [f"int {OPEN_EXTENT}"] if _open_axis(view) else []


def _end(view: RowsAndKeys, parts: tuple[Part, ...]) -> End:
    return End(parts, bool(parts) and parts[0].axis == _open_axis(view))


def _open_axis(view: RowsAndKeys) -> str | None:
    return view.open_axis if isinstance(view, Chained) else None
