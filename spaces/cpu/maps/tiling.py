"""The tiles of a map's plane, and how workers share them.

All of it works on integers and, element by element, on NumPy arrays of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.abi import LINE_BYTES
from tilewright.spaces.cpu.maps.registers import Registers
from tilewright.spaces.cpu.maps.straight import STRIPS
from tilewright.spaces.decided import Decided
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.derivation.maps.plane import Plane

NOTHING, ASK, TURN = "nothing", "ask", "turn"
"""Values of the decision ``prefetch``: nothing is done about the next tile; its lines are
prefetched; or it is read and transposed while this tile is written."""


@dataclass(frozen=True)
class Tiling:
    """The tiles that the decisions ``values`` (integers or arrays) cut ``plane`` into."""

    plane: Plane
    registers: Registers
    values: Mapping[str, Any]

    tile_rows = Decided()
    tile_columns = Decided()

    @property
    def row_tiles(self) -> Any:
        """The number of tiles along rows."""
        return ceil_div(self.plane.height, self.tile_rows)

    @property
    def column_tiles(self) -> Any:
        """The number of tiles along columns."""
        return ceil_div(self.plane.width, self.tile_columns)

    @property
    def counts(self) -> tuple[Any, ...]:
        """The turns of the outer loops, then the tiles along rows and columns."""
        return (*(loop.extent for loop in self.plane.outer), self.row_tiles, self.column_tiles)

    @property
    def line(self) -> int:
        """Elements of the first output in a cache line."""
        return LINE_BYTES // self.plane.view.outputs[0].array.element.bytes

    @property
    def pitch(self) -> Any:
        """Elements from one row of a transposed tile to the next.

        They are a line more than its columns: the line that tiles share, and a stride that spreads
        rows over the sets of the cache.
        """
        return round_up(self.tile_columns, self.registers.lanes) + self.line

    @property
    def transposed_elements(self) -> Any:
        """Elements of one transposed tile."""
        return round_up(self.tile_rows, self.registers.side) * self.pitch

    straight = Decided("register_transpose", False)
    """True if transposed blocks go straight from registers to the output."""
    strips = Decided("strips", STRIPS[0])
    """The number of strips of such blocks that are walked together."""
    skew = Decided("skew", 0)
    """The number of blocks that each of these strips lags behind the one before it."""

    @property
    def asks(self) -> Any:
        """True if the next tile is prefetched."""
        return self.values["prefetch"] == ASK

    @property
    def transposes_ahead(self) -> Any:
        """True if the next tile is transposed while one is written."""
        return self.values["prefetch"] == TURN

    @property
    def scratch_elements(self) -> Any:
        """Elements of all transposed copies of one tile."""
        return np.where(self.straight, 0, len(self.plane.transposed) * self.transposed_elements)

    @property
    def scratch_bytes(self) -> Any:
        """Bytes of all transposed copies of one worker at a time."""
        tiles = np.where(self.transposes_ahead, 2, 1)
        return tiles * self.scratch_elements * self.registers.bytes

    @property
    def shared_rank(self) -> Any:
        """The rank of :attr:`counts` that workers share: the longest one; of equal ones that of the
        outermost loop, so that each worker reads long runs."""
        *outer, rows, columns = np.broadcast_arrays(*self.counts)
        last = len(outer)
        in_turn = np.argmax(np.stack([*outer, columns, rows]), axis=0)  # where rows are inner
        otherwise = np.argmax(np.stack([*outer, rows, columns]), axis=0)
        swapped = np.where(in_turn >= last, 2 * last + 1 - in_turn, in_turn)
        return np.where(self.values["order"] == ROWS, swapped, otherwise)

    @property
    def share(self) -> Any:
        """The most that one worker has of the shared count."""
        counts = np.stack(np.broadcast_arrays(*self.counts))
        return ceil_div(counts.max(axis=0), self.values["workers"])
