"""The assignment of elements to the threads of a rows kernel.

A row is divided among ``parts``: its threads in each block of a cluster. They read it in turns, a
vector each, so that neighbouring threads read neighbouring vectors; the vectors of a step are all
read before any is used. A map's row is also cut into chunks of one step, which different blocks
have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.rows.view import Rows

ROW_STORAGE = ("registers", "shared", "memory")
"""Places where elements stay that are used more than once; with ``memory`` they are read again."""
LANES = ("columns", "rows")
"""Neighbouring threads read neighbours of a row, or the same columns of neighbouring rows."""
CONVERT = ("once", "again")
"""Elements held in pairs are unpacked once, or again at each use so that numbers are not held."""

ROW_INVARIANTS = ("again", "kept")
"""Operands that all rows share are read again for each tile, or kept in registers."""

IDLE_CLUSTERS = (0, 1, 2, 3)
"""Clusters by which a layer of blocks is smaller than the multiprocessors would allow.

A layer has a block on each multiprocessor. GPCs have no whole number of clusters, and how many
remain free differs from GPU to GPU.
"""


@dataclass(frozen=True)
class RowTile:
    """Extents of schedules of ``rows``, from the values of one schedule or columns of decisions."""

    rows: Rows

    def threads(self, c: Mapping[str, Any]) -> Any:
        """Return the threads of a block."""
        return c["row_threads"] * c["block_rows"]

    def parts(self, c: Mapping[str, Any]) -> Any:
        """Return the threads that share a row."""
        return c["row_threads"] * c["cluster"]

    def turn(self, c: Mapping[str, Any]) -> Any:
        """Return the columns that the threads of a row read at once."""
        return self.parts(c) * c["vector"]

    def turns(self, c: Mapping[str, Any]) -> Any:
        """Return the vectors of a thread in a row, or in its chunk of a map's row."""
        every = ceil_div(self.rows.column_count, self.turn(c))
        return c["unroll"] + 0 * every if self.rows.is_map else every

    def at_once(self, c: Mapping[str, Any]) -> Any:
        """Return the vectors of a thread that are read at once."""
        held = (c["row_storage"] == "registers") * self.turns(c)
        return held + (c["row_storage"] != "registers") * c["unroll"]

    def copied(self, c: Mapping[str, Any]) -> Any:
        """Return true where elements come through shared memory."""
        return (c["row_storage"] == "shared") | (c["stages"] > 1)

    def buffers(self, c: Mapping[str, Any]) -> Any:
        """Return the tiles that shared memory has room for: registers hold one of the stages."""
        return c["stages"] - (c["row_storage"] == "registers")

    def steps(self, c: Mapping[str, Any]) -> Any:
        """Return the steps of a thread along a row or chunk."""
        return ceil_div(self.turns(c), self.at_once(c))

    def chunks(self, c: Mapping[str, Any]) -> Any:
        """Return the chunks of a row, each in a tile of its own."""
        every = ceil_div(self.rows.column_count, self.turn(c) * self.turns(c))
        return every if self.rows.is_map else 1 + 0 * every

    def tile_rows(self, c: Mapping[str, Any]) -> Any:
        """Return the rows of a tile: those side by side, times those a thread has at once."""
        return c["block_rows"] * c["thread_rows"]

    def tiles(self, c: Mapping[str, Any]) -> Any:
        """Return the tiles of the whole problem."""
        return ceil_div(self.rows.row_count, self.tile_rows(c)) * self.chunks(c)
