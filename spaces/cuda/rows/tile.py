"""Which thread of a rows kernel reads which elements.

A row is divided among ``parts``: the threads that have it in each block of a cluster. They read it
in turns, each a vector a time, so that neighbours lie side by side; the vectors of a step are read
before any is used. A map's row is cut into chunks of one step besides, for blocks to share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.rows.view import Rows

HOLDS = ("registers", "shared", "memory")
"""Where elements stay that are used more than once; those of memory are read again."""
LANES = ("columns", "rows")
"""What neighbouring threads read: neighbours of a row, or the same columns of neighbouring rows."""
UNPACKS = ("once", "again")
"""Whether the numbers of elements that registers hold in pairs stay too, or are made again."""

COMMON = ("again", "kept")
"""Whether what is the same for all rows is read again for each tile, or stays in registers."""

SPARED = (0, 1, 2, 3)
"""How many clusters fewer run at a time, for each block of a multiprocessor, than multiprocessors
would make: processing clusters have no whole number of them, which differs from GPU to GPU."""


@dataclass(frozen=True)
class RowTile:
    """Extents of schedules of ``rows``, from one schedule's values or columns of decisions."""

    rows: Rows

    def threads(self, c: Mapping[str, Any]) -> Any:
        """Threads of a block."""
        return c["row_threads"] * c["block_rows"]

    def parts(self, c: Mapping[str, Any]) -> Any:
        """Threads that share a row."""
        return c["row_threads"] * c["cluster"]

    def turn(self, c: Mapping[str, Any]) -> Any:
        """Columns that the threads of a row read at once."""
        return self.parts(c) * c["vector"]

    def turns(self, c: Mapping[str, Any]) -> Any:
        """Vectors of a thread in a row, or in its chunk of a map's row."""
        every = ceil_div(self.rows.column_count, self.turn(c))
        return c["unroll"] + 0 * every if self.rows.is_map else every

    def at_once(self, c: Mapping[str, Any]) -> Any:
        """Vectors of a thread that are on their way at once."""
        held = (c["row_storage"] == "registers") * self.turns(c)
        return held + (c["row_storage"] != "registers") * c["unroll"]

    def copied(self, c: Mapping[str, Any]) -> Any:
        """Whether elements come by shared memory."""
        return (c["row_storage"] == "shared") | (c["stages"] > 1)

    def buffers(self, c: Mapping[str, Any]) -> Any:
        """Tiles that shared memory has room for: registers hold one of the stages."""
        return c["stages"] - (c["row_storage"] == "registers")

    def steps(self, c: Mapping[str, Any]) -> Any:
        """Steps of a thread along a row or chunk."""
        return ceil_div(self.turns(c), self.at_once(c))

    def chunks(self, c: Mapping[str, Any]) -> Any:
        """Chunks of a row that different tiles have."""
        every = ceil_div(self.rows.column_count, self.turn(c) * self.turns(c))
        return every if self.rows.is_map else 1 + 0 * every

    def tile_rows(self, c: Mapping[str, Any]) -> Any:
        """Rows of a tile: those side by side, by those a thread has at once."""
        return c["block_rows"] * c["thread_rows"]

    def tiles(self, c: Mapping[str, Any]) -> Any:
        """Tiles of the whole problem."""
        return ceil_div(self.rows.row_count, self.tile_rows(c)) * self.chunks(c)
