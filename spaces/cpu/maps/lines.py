"""Cache lines of a map: where tiles part the rows that they write, and what is prefetched.

Stores past the caches are fast if they fill whole lines. If rows are streamed, a tile therefore
begins each row at the first whole line of the first output at or behind its first column, and ends
at the first one behind its last column: rows need not begin at a line, and each meets lines at
columns of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import LINE_BYTES
from tilewright.spaces.cpu.maps.tiling import Tiling
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class Lines:
    """The cache lines of a map's tiles."""

    tiling: Tiling
    values: Mapping[str, Value]

    @property
    def first(self) -> Access:
        """The output whose lines part the rows."""
        return self.tiling.plane.view.outputs[0]

    @property
    def most(self) -> int:
        """The most columns that a tile has."""
        return int(self.tiling.tile_columns) + (
            self.tiling.line if self.values["streaming_stores"] else 0
        )

    @property
    def _alike(self) -> bool:
        """True if all rows of all tiles begin equally far from a line."""
        tile, plane, array = self.tiling.tile_columns, self.tiling.plane, self.first.array
        steps = [tile, *(self.first.step(x.name) for x in plane.loops if x != plane.columns)]
        return all(step * array.element.bytes % LINE_BYTES == 0 for step in steps)

    @property
    def are_whole(self) -> bool:
        """True if rows consist of whole vectors, provided that the first output begins at a
        line."""
        fit = self.tiling.plane.width % self.tiling.registers.lanes == 0
        return fit and (not self.values["streaming_stores"] or self._alike)

    def reach(self, start: str) -> str:
        """Return the C expression of the most columns that a tile has, if the first output begins
        at the address ``start``."""
        tile = self.tiling.tile_columns
        if not self.values["streaming_stores"]:
            return str(tile)
        return f"{tile} + {self._skew(start) if self._alike else self.tiling.line}"

    def span(self, start: str, place: str) -> list[str]:
        """Declare the C variables ``j`` and ``end`` of the tile's part of a row.

        The row's first column is at ``place`` in the output that begins at ``start``. With
        streaming stores, ``skew`` is declared too: the number of columns in front of the row's
        first line.
        """
        if not self.values["streaming_stores"]:
            return ["const long end = columns;", "long j = 0;"]
        tile, column = self.tiling.tile_columns, self.tiling.plane.columns.name
        if self._alike:
            found = f"const long skew = {self._skew(start)}, end = columns;"
            return [found, f"long j = {column} ? skew : 0;"]
        return [
            f"const long skew = {self._skew(place)};",
            f"const long end = tw_least(columns, {tile} + {self._skew(f'{place} + {tile}')});",
            f"long j = {column} ? skew : 0;",
        ]

    def _skew(self, place: str) -> str:
        return f"tw_to_line_{self.tiling.registers.dtype(self.first.array.dtype)}({place})"

    def fetch(self, access: Access, place: str, row: Index) -> list[str]:
        """Write the prefetches for the next tile of an access that is transposed.

        The access has the ``row`` at ``place``; each row of a tile prefetches its share of the
        columns.
        """
        tiling, step = self.tiling, self.tiling.plane.column_step(access)
        assert step is not None
        line = LINE_BYTES // access.array.element.bytes
        inner = self.values["order"] == ROWS
        ahead = tiling.tile_rows if inner else tiling.tile_columns * step
        share = ceil_div(tiling.tile_columns, tiling.tile_rows)
        first, last = (row * share).text, line - 1
        return [
            f"for (long n = {first}; n < tw_least(columns, {first} + {share}); n++)",
            f"  for (long m = {last}; m < {tiling.tile_rows} + {last}; m += {line})",
            f"    __builtin_prefetch({place} + {ahead} + n * {step} + m - {row.text});",
        ]
