"""Resources of SIMT schedules: tiles of threads and blocks, shared memory, registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.cuda.blocks.finish import sum_dtype
from tilewright.spaces.cuda.blocks.sizes import RingSizes
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.dtypes import dtype


@dataclass(frozen=True)
class SimtSizes(RingSizes):
    """Sizes of SIMT schedules, from their decisions."""

    @property
    def bytes(self) -> int:
        """Bytes of an element in shared memory."""
        return dtype(sum_dtype(self.product)).bytes

    def vectors(self, c: Any) -> tuple[Any, Any]:
        """Return rows and columns that a thread reads at once from shared memory."""
        widest = 16 // self.bytes
        return np.minimum(c["thread_rows"], widest), np.minimum(c["thread_columns"], widest)

    def lane_rows(self, c: Any) -> Any:
        """Return the lanes of a warp along rows."""
        return c["lane_rows"]

    def lane_columns(self, c: Any) -> Any:
        """Return the lanes of a warp along columns."""
        return WARP // c["lane_rows"]

    def block(self, c: Any) -> tuple[Any, Any]:
        """Return rows and columns of a block's tile."""
        rows = c["warp_rows"] * c["lane_rows"] * c["thread_rows"]
        return rows, c["warp_columns"] * self.lane_columns(c) * c["thread_columns"]

    def stages(self, c: Any) -> Any:
        """Return 2: one stage to read while the other is written."""
        return 2

    def row(self, width: Any, deep: bool) -> Any:
        """Return the elements from each term of a tile to the next.

        Elements that arrive deep are transposed into rows padded by a vector, so that they fall
        into different banks.
        """
        return width + deep * (16 // self.bytes)

    def tile_bytes(self, width: Any, deep: bool, c: Any) -> Any:
        """Return the bytes of a tile, its terms one after the other."""
        return ((c["depth"] - 1) * self.row(width, deep) + width) * self.bytes

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block: both stages."""
        return self.ring_bytes(c)

    def sums(self, c: Any) -> Any:
        """Return the registers of a thread's sums."""
        return c["thread_rows"] * c["thread_columns"] * (self.bytes // 4)

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers with which a thread does not spill.

        They hold sums, one term's elements, tiles in transit, and addresses. Calibrated on what
        NVRTC 13.5 needs.
        """
        words = self.bytes // 4
        fragments = (c["thread_rows"] + c["thread_columns"]) * words
        plain = self.product.left.element.bytes == 4
        addresses = 36 if plain else 48
        rows, columns = self.block(c)
        left, right = self.product.left, self.product.right
        # each of the smaller elements takes a register, for they are converted
        held = self.held(left, rows, c) + self.held(right, columns, c)
        held = held * max(left.element.bytes // 4, 1)
        tables = self.tables(left, rows, c) + self.tables(right, columns, c)
        return self.sums(c) + fragments + held + addresses + tables
