"""Bytes that one product of placed operands moves between caches, and bytes that are to stay there.

As for plain products (``spaces.cpu.blocked.traffic``), either a panel of the right operand stays in
L1 while rows stream past it, or the rows of a tile stay while panels do; a block of the operand
that streams stays in L2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.traffic import USABLE, line_turns, middle_reach, near_reach
from tilewright.spaces.cpu.windows.blocking import Blocking
from tilewright.spaces.cpu.windows.nest import LEFT, RIGHT, Windows
from tilewright.spaces.template import Columns


@dataclass(frozen=True)
class CacheTraffic:
    """Bytes for each of many schedules with the decisions ``values`` and the extents ``b``."""

    view: Windows
    b: Blocking
    target: CpuTarget
    values: Columns

    # -- what there is -----------------------------------------------------------------------------

    @cached_property
    def rows(self) -> Any:
        """The number of rows of all lines."""
        return float(self.view.nest(True).line_count) * self.b.rows

    @cached_property
    def terms(self) -> float:
        """The number of terms of a sum."""
        return float(self.view.nest(True).terms)

    @cached_property
    def left(self) -> Any:
        """Bytes of the left operand as a matrix: one element for each row and term."""
        return FLOAT * self.terms * self.rows

    @cached_property
    def source(self) -> float:
        """Bytes of the left operand in memory, where an element that is in many windows lies
        once."""
        source = self.view.left
        return float(source.padded.bytes if source.padded else source.factor.operand.bytes)

    @cached_property
    def right(self) -> Any:
        """Bytes of the right operand as a matrix: one element for each term and column."""
        return FLOAT * self.terms * self.b.columns

    @cached_property
    def sums(self) -> Any:
        """Bytes of the sums, which are loaded and stored for each block of the depth."""
        return 2.0 * FLOAT * self.rows * self.b.columns * self.b.depth_blocks

    # -- what stays --------------------------------------------------------------------------------

    @cached_property
    def rows_outer(self) -> Any:
        """True where the rows of a tile stay in L1 while panels stream past; a panel stays
        otherwise."""
        return self.values["order"] == "rows_outer"

    @cached_property
    def column_tiles(self) -> Any:
        """The number of tiles side by side."""
        return ceil_div(self.b.columns, self.b.tile_columns)

    @cached_property
    def tile(self) -> Any:
        """Bytes of one row, or one column, of a block of the depth."""
        return FLOAT * self.b.block_terms

    @cached_property
    def left_tile(self) -> Any:
        """Bytes of the left operand that a tile reads."""
        return self.tile * self.b.tile_rows

    @cached_property
    def panel(self) -> Any:
        """Bytes of the right operand that a tile reads."""
        return self.tile * self.b.tile_columns

    @cached_property
    def staying(self) -> Any:
        """Bytes that are to stay in L1."""
        return np.where(self.rows_outer, self.left_tile, self.panel)

    @cached_property
    def block(self) -> Any:
        """Bytes that are to stay in L2."""
        b = self.b
        left = self.source * b.block_terms / self.terms
        return np.where(self.rows_outer, self.tile * b.block_columns, left)

    # -- what moves --------------------------------------------------------------------------------

    def near(self) -> Any:
        """Compute the bytes that move from L2 to L1."""
        b, left, right, rows_outer = self.b, self.left, self.right, self.rows_outer
        streaming = np.where(rows_outer, right * b.row_tiles, left * self.column_tiles)
        once = np.where(rows_outer, left * b.column_blocks, right)
        again = np.where(rows_outer, left * self.column_tiles, right * b.row_tiles)
        panels = self._right_reach(near_reach, b.tile_columns)
        room = USABLE * self.target.l1_bytes * np.where(rows_outer, 1.0, panels)
        kept = np.where(self.staying <= room, once, again)
        apart = FLOAT * abs(self.view.nest(True).row.strides[LEFT])
        turns = line_turns(self.target, b.tile_rows, apart)
        return streaming + kept + left * self.column_tiles * (turns - 1) + self.sums

    def middle(self) -> Any:
        """Compute the bytes that move from L3 to L2."""
        b, right, source, rows_outer = self.b, self.right, self.source, self.rows_outer
        streamed = np.where(rows_outer, right * b.row_tiles, source * self.column_tiles)
        once = np.where(rows_outer, right, source * b.column_blocks)
        panels, blocks = (
            self._right_reach(middle_reach, width) for width in (b.tile_columns, b.block_columns)
        )
        fits = self.block <= USABLE * self.target.l2_bytes * np.where(rows_outer, blocks, 1.0)
        returns = self.panel <= USABLE * self.target.l2_bytes * panels
        rights = np.where(returns, right, right * b.row_tiles)
        others = np.where(rows_outer, source, rights)
        return np.where(fits, once, streamed) + others + self.sums

    def _right_reach(self, reach: Callable[[Any, int], Any], width: Any) -> Any:
        """Compute the share of a cache that ``width`` columns of the right operand can use: all of
        it if they are packed, else what ``reach`` says of the steps in memory."""
        right, depth = self.view.right.factor, self.view.nest(False).depth
        size = right.operand.element.bytes
        apart = size * max(abs(loop.strides[RIGHT]) for loop in depth)
        return np.where(self.values["pack_right"], 1.0, reach(size * width, apart))
