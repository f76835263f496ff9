"""The workspace: padded copies, then each worker's packed block, sums and patch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.algebra.layout import Strided, row_major, strided
from tilewright.spaces.cpu.abi import FLOAT, LINE, PAGE
from tilewright.spaces.cpu.windows.blocking import Blocking
from tilewright.spaces.cpu.windows.copies.packing import PackedBlock
from tilewright.spaces.cpu.windows.copies.patches import Patches, patches
from tilewright.spaces.cpu.windows.nest import OUTPUT, Nest, Windows
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class Memory:
    """The workspace of a kernel of ``view`` under the decisions ``values``.

    ``blocks`` are the extents, ``nest`` are the loops. Sizes of the packed block and the sums are
    in floats.
    """

    view: Windows
    values: Mapping[str, Value]
    lanes: int
    blocks: Blocking
    nest: Nest

    @property
    def bytes(self) -> int:
        """Bytes of the whole workspace."""
        return self.worker_start + self.blocks.workers * self.worker_bytes

    @cached_property
    def copy_starts(self) -> list[int]:
        """Byte offsets of each padded copy, and of what follows the last one. Behind each copy
        there is room for a vector, as loads may reach past its end."""
        sizes = [round_up(copy.bytes + FLOAT * self.lanes, PAGE) for copy in self.view.copies]
        return [0, *accumulate(sizes)]

    @property
    def worker_start(self) -> int:
        """The byte offset of the first worker's memory."""
        return self.copy_starts[-1]

    @property
    def worker_bytes(self) -> int:
        """Bytes of one worker's memory."""
        patch = FLOAT * self.patches.elements if self.patches else 0
        return round_up(FLOAT * (self.packed_floats + self.sums_floats) + patch, PAGE)

    @cached_property
    def packed(self) -> PackedBlock | None:
        """The packed block of the right operand; None if it is read in place."""
        if not self.values["pack_right"]:
            return None
        b = self.blocks
        return PackedBlock(
            nest=self.nest,
            turns=b.block_turns,
            panels=b.block_columns // b.tile_columns,
            width=b.tile_columns,
            lanes=self.lanes,
            dtype=self.view.right.dtype,
        )

    @cached_property
    def packed_floats(self) -> int:
        """The size of the packed block in floats, rounded up to whole cache lines."""
        return round_up(self.packed.floats, LINE) if self.packed else 0

    @property
    def own_sums(self) -> bool:
        """True if sums have memory of their own, as the output cannot hold unfinished ones."""
        return not self.view.keeps_sums

    @cached_property
    def sums(self) -> Strided:
        """The layout (row, column) of a tile's sums: in the output, or in their own memory."""
        b = self.blocks
        if not self.own_sums:
            strides = (self.nest.row.strides[OUTPUT], self.nest.column.strides[OUTPUT])
            return strided((b.tile_rows, b.tile_columns), strides)
        return row_major(b.tile_rows, b.tile_columns)

    @property
    def sums_floats(self) -> int:
        """The size of the sums' own memory in floats."""
        return round_up(self.sums.size, LINE) if self.own_sums else 0

    @cached_property
    def patches(self) -> Patches | None:
        """The patches of tiles that cross borders of the left operand; None if it is not read in
        place."""
        if self.view.left.patched is None:
            return None
        b = self.blocks
        return patches(self.view, bool(self.values["pack_right"]), b.tile_rows, b.block_turns)
