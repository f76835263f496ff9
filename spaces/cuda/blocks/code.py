"""Code shared by the SIMT and mma.sync kernels, whose threads copy tiles to shared memory.

A block computes one tile of the output in steps of depth: copies of both operands' tiles fill the
stages of a ring in shared memory; the threads multiply from there into sums in registers; the sums
are exchanged with other blocks if the depth is split, finished, and stored.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cuda.blocks.copies.block_copy import BlockCopy, Ends
from tilewright.spaces.cuda.blocks.copies.tile_copy import position_type
from tilewright.spaces.cuda.blocks.finish import batch_parts, parameter_name
from tilewright.spaces.cuda.blocks.grid_code import GridCode
from tilewright.spaces.cuda.blocks.segments import row_end, segment_lines, segments_of
from tilewright.spaces.cuda.blocks.sizes import RingSizes
from tilewright.spaces.cuda.blocks.tile_grid import TileGrid, tile_grid
from tilewright.spaces.cuda.plan import Number, Size
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class BlockCode(GridCode):
    """A kernel whose threads copy tiles to a ring of stages in shared memory."""

    sizes: RingSizes

    # -- what a template says ------------------------------------------------------------------

    @abstractmethod
    def copy(self, name: str, operand: Array, width: int, deep: bool) -> BlockCopy:
        """Return the copy of an operand's tiles, which have ``width`` of its rows or columns.

        ``deep`` is true if depth runs along the operand's fastest dimension.
        """

    @property
    @abstractmethod
    def declare_sums(self) -> str:
        """The C declaration of ``sums``, all zero."""

    @property
    def sum(self) -> str:
        """C text of sum number ``i`` of a thread."""
        return "sums[i]"

    @abstractmethod
    def main_loop(self) -> list[str]:
        """Print the loop that adds all products of ``steps`` steps to the sums.

        The copies have been started at their first tiles, which are at ``depth0``. In the end, only
        other threads may have accesses to shared memory pending.
        """

    @abstractmethod
    def finish(self) -> list[str]:
        """Print how the sums are finished and stored."""

    # -- what follows --------------------------------------------------------------------------

    @cached_property
    def left(self) -> BlockCopy:
        """The copy of the left operand's tiles."""
        return self.copy("left", self.product.left, self.block[0], self.product.left_runs_deep)

    @cached_property
    def right(self) -> BlockCopy:
        """The copy of the right operand's tiles."""
        return self.copy("right", self.product.right, self.block[1], self.product.right_runs_deep)

    @property
    def warps(self) -> tuple[int, int]:
        """Warps of a block along rows and columns."""
        return self.number("warp_rows"), self.number("warp_columns")

    stages = Size()
    left_bytes = Size()
    stage_bytes = Size()
    depth = Number()

    @cached_property
    def grid(self) -> TileGrid:
        """The assignment of tiles to blocks."""
        return tile_grid(self.product, *self.block, self.depth, self.values)

    def tile_lines(self) -> list[str]:
        """Print the work of a block on its tile."""
        return [
            *self._segment(),
            *self.corner(),
            self.declare_sums,
            *self.left.start(*self.left_corner),
            *self.right.start(*self.right_corner),
            *self.main_loop(),
            *CUDA.written(self.partial.write),
            *self.finish(),
        ]

    def _segment(self) -> list[str]:
        """Print the declarations of the block's segment, its ``first_row``, and parts of arrays.

        Empty if rows come in no segments.
        """
        segments = segments_of(self.product)
        if segments is None:
            return []
        table = parameter_name(self.product, segments.table)
        return [*segment_lines(segments, table, self.block[0]), *batch_parts(self.product)]

    def corner(self) -> list[str]:
        """Print where the block's tile starts: ``row0``, ``column0`` and ``depth0``."""
        position = position_type(self.product)
        row = (
            "first_row" if segments_of(self.product) else f"({position})tile_row * {self.block[0]}"
        )
        return [
            f"const {position} row0 = {row};",
            f"const {position} column0 = ({position})tile_column * {self.block[1]};",
            f"{position} depth0 = ({position})first_step * {self.depth};",
        ]

    @property
    def left_corner(self) -> tuple[str, str]:
        """The C names of where the next left tile starts, along (slow, fast) of its memory."""
        return ("row0", "depth0") if self.product.left_runs_deep else ("depth0", "row0")

    @property
    def right_corner(self) -> tuple[str, str]:
        """The C names of where the next right tile starts, along (slow, fast) of its memory."""
        return ("column0", "depth0") if self.product.right_runs_deep else ("depth0", "column0")

    @property
    def left_ends(self) -> Ends:
        """The ends of what may be read of the left operand; rows may end before its own do."""
        slow, fast = self.left.ends
        end = row_end(self.product)
        if end is None:
            return slow, fast
        return (end, fast) if self.product.left_runs_deep else (slow, end)

    def advance(self) -> list[str]:
        """Print how both copies go on to the next tiles."""
        return [*self.left.advance(), *self.right.advance(), f"depth0 += {self.depth};"]
