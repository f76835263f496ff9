"""The order in which blocks walk over tiles of which calls give the number of rows.

The order is that of :class:`~spaces.cuda.blocks.tile_grid.TileGrid`, but the last band of rows is
no higher than the rows that are left: so blocks have equal work, however few rows a call has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.abi import open_tiles
from tilewright.spaces.kernels.text import CUDA

Lines = Callable[[tuple[Index, ...]], Sequence[str]]
ROW_TILES = "row_tiles"
"""The C variable of the rows of tiles that a call has."""


@dataclass(frozen=True)
class OpenWalk:
    """An order of at most ``rows`` rows of ``columns`` tiles, which are ``step`` rows high; each
    point of the open axis has ``rows_each`` of the latter.

    Bands of ``band`` rows of tiles follow each other or, if ``along_rows``, bands of as many
    columns of them. A band is crossed first.
    """

    step: int
    rows: int
    columns: int
    band: int
    along_rows: bool
    rows_each: int = 1

    @property
    def places_each(self) -> int:
        """Places for each row of tiles; some may hold no tile."""
        return int(round_up(self.columns, self.band)) if self.along_rows else self.columns

    @property
    def places(self) -> str:
        """C text of the places of a call, which reads :data:`ROW_TILES`."""
        return f"{ROW_TILES} * {self.places_each}"

    def count(self) -> list[str]:
        """Print the declaration of :data:`ROW_TILES`."""
        count = open_tiles(self.step, self.rows * self.step, self.rows_each)
        return [f"const int {ROW_TILES} = {count.text};"]

    def emit(self, place: str, lines: Lines) -> list[str]:
        """Print ``lines(tile)`` for the tile at a ``place``, which is C text, if there is one.

        They read :data:`ROW_TILES`.
        """
        number = index(place, self.rows * self.places_each)
        if self.band == (self.columns if self.along_rows else 1):
            return [*lines((number // self.columns, number % self.columns))]
        row, column = index("walk_row", self.rows), index("walk_column", self.columns)
        found = self._in_columns(place) if self.along_rows else self._in_rows(number)
        body = lines((row, column))
        if self.places_each > self.columns:
            body = CUDA.when(f"walk_column < {self.columns}", body)
        return [*found, *body]

    def _in_rows(self, number: Index) -> list[str]:
        """Print where a place is in bands of rows."""
        first, within = number // (self.band * self.columns), number % (self.band * self.columns)
        return [
            f"const int band_row = {first * self.band}, rows_left = {ROW_TILES} - band_row;",
            f"const int high = rows_left < {self.band} ? rows_left : {self.band};",
            f"const int walk_row = band_row + {within} % high, walk_column = {within} / high;",
        ]

    def _in_columns(self, place: str) -> list[str]:
        """Print where a place is in bands of columns."""
        size = f"({ROW_TILES} * {self.band})"
        within = index(f"({place} % {size})", self.rows * self.band)
        row, column = within // self.band, within % self.band
        first = f"{place} / {size} * {self.band}"
        return [f"const int walk_row = {row.text}, walk_column = {first} + {column};"]
