"""Extents and resources of scans: tiles of rows, shared by the threads of a block.

A row is divided among its threads in groups: the lanes of a warp, which join their sums by
shuffles, or single threads, where neighbours have different rows. A group has so many ``vectors``,
one behind the other, each of which its lanes read side by side. Sizes are integers or, element by
element, NumPy arrays of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.blocks.last_to_come import TICKET, TICKETS
from tilewright.spaces.cuda.rows.merging import SLOT
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.decided import Decided
from tilewright.spaces.derivation.scans.view import Scan

ROWS, COLUMNS = "rows", "columns"
"""Values of ``parallel_over``: a block walks along its rows, or several share the columns of
these."""
BUFFERS = 2
"""Slots of each group's sum: those of the tile before are read while others are written."""


@dataclass(frozen=True)
class ScanSizes:
    """Tiles of ``view`` under the decisions ``values`` (integers or arrays), in a type of ``real``
    bytes."""

    view: Scan
    values: Mapping[str, Any]
    real: int

    row_threads = Decided()
    """Threads of a row in a block."""
    block_rows = Decided()
    """Rows of a block."""
    vector = Decided()
    """Columns side by side that a thread reads at once."""
    vectors = Decided()
    """Vectors of a thread in a tile."""

    @property
    def threads(self) -> Any:
        """Threads of a block."""
        return self.row_threads * self.block_rows

    @property
    def lanes(self) -> Any:
        """Threads of a group."""
        return np.where(self.values["lanes"] == ROWS, 1, np.minimum(self.row_threads, WARP))

    @property
    def groups(self) -> Any:
        """Groups that share a row in a block."""
        return self.row_threads // self.lanes

    @property
    def elements(self) -> Any:
        """Columns of a thread in a tile."""
        return self.vector * self.vectors

    @property
    def tile(self) -> Any:
        """Columns of a tile."""
        return self.row_threads * self.elements

    @property
    def chunks(self) -> Any:
        """Tiles along a row."""
        return ceil_div(self.view.column_count, self.tile)

    @property
    def row_tiles(self) -> Any:
        """Tiles that have all rows."""
        return ceil_div(self.view.row_count, self.block_rows)

    @property
    def splits(self) -> Any:
        """True if blocks share the columns of a row."""
        return self.values["parallel_over"] == COLUMNS

    @property
    def blocks(self) -> Any:
        """Blocks of the grid."""
        return self.row_tiles * np.where(self.splits, self.chunks, 1)

    @property
    def sums(self) -> int:
        """Sums of a row."""
        return len(self.view.running)

    @property
    def slot_bytes(self) -> Any:
        """Bytes of shared memory for the sums of all groups of a block."""
        return np.where(self.groups > 1, self.groups * self.block_rows * SLOT, 0)

    @property
    def shared_bytes(self) -> Any:
        """Bytes of shared memory of a block: slots, then its ticket."""
        return self.sums * BUFFERS * self.slot_bytes + np.where(self.splits, TICKET, 0)

    @property
    def flags(self) -> Any:
        """Flags that say which sums of a tile are in the workspace."""
        return self.sums * self.chunks * self.row_tiles

    @property
    def zeroed_bytes(self) -> Any:
        """Bytes at the start of the workspace that are zero between calls: two tickets, then
        flags."""
        return np.where(self.splits, TICKETS + round_up(4 * self.flags, TICKETS), 0)

    @property
    def workspace_bytes(self) -> Any:
        """Bytes of the workspace: what is zeroed, then the sums of all tiles."""
        sums = self.sums * self.chunks * self.view.row_count * self.real
        return np.where(self.splits, self.zeroed_bytes + sums, 0)

    @property
    def registers(self) -> Any:
        """Registers of a thread, roughly."""
        words = self.elements * (self.real // 4) * (self.sums + 1)
        return BOOKKEEPING + words


BOOKKEEPING = 26
"""Registers of a thread that hold no elements."""
