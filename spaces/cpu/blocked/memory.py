"""What the workers of a contraction keep in memory, and how they read its operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.layout import Strided, row_major
from tilewright.spaces.cpu.abi import FLOAT, LINE, PAGE
from tilewright.spaces.cpu.blocked.ahead import Ahead
from tilewright.spaces.cpu.blocked.blocking import Blocking
from tilewright.spaces.cpu.blocked.packing import LeftBlock, RightBlock
from tilewright.spaces.cpu.tiles.steps import PAIR, Stream, stream
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.product import Product


@dataclass(frozen=True)
class Memory:
    """Packed blocks and sums of ``product`` under the decisions ``values``, cut into ``blocks``."""

    product: Product
    values: Mapping[str, Value]
    lanes: int
    blocks: Blocking

    @property
    def terms_a_step(self) -> int:
        """Terms that one step along the depth multiplies."""
        return 2 if self.values["multiply"] == "dot" else 1

    @property
    def packed(self) -> str:
        """Dtype of packed elements, of 4 bytes: all sizes of blocks are in these."""
        return PAIR if self.values["multiply"] == "dot" else "float32"

    @property
    def steps(self) -> int:
        """Steps of the whole depth."""
        return ceil_div(self.product.terms, self.terms_a_step)

    @property
    def block_steps(self) -> int:
        """Steps of a block of it."""
        return int(self.blocks.block_depth) // self.terms_a_step

    @cached_property
    def left(self) -> Stream:
        """The left operand as tiles or packing functions read it."""
        return stream(self.product, self.product.left, self.terms_a_step)

    @cached_property
    def right(self) -> Stream:
        """The right one."""
        return stream(self.product, self.product.right, self.terms_a_step)

    @cached_property
    def left_block(self) -> LeftBlock | None:
        """The left operand's packed block; None if it is read as it lies."""
        if not self.values["pack_left"]:
            return None
        b = self.blocks
        panels = b.block_rows // b.tile_rows
        return LeftBlock(panels, b.tile_rows, self.block_steps, self.lanes, self.packed, self.left)

    @cached_property
    def right_block(self) -> RightBlock | None:
        """That of the right one."""
        if not self.values["pack_right"]:
            return None
        b = self.blocks
        panels = b.block_columns // b.tile_columns
        return RightBlock(
            panels, b.tile_columns, self.block_steps, self.lanes, self.packed, self.right
        )

    @cached_property
    def ahead(self) -> Ahead | None:
        """What is fetched ahead; None for nothing."""
        if not self.values["prefetch"]:
            return None
        return Ahead(self.product, self.blocks, bool(self.values["pack_right"]))

    @cached_property
    def sums(self) -> Strided | None:
        """Layout of a worker's partial sums, where the output cannot hold them itself."""
        if self.product.output.dtype == "float32":
            return None
        if self.blocks.depth_blocks > 1:
            return row_major(self.blocks.chunk_rows, self.blocks.chunk_columns)
        return row_major(self.blocks.tile_rows, self.blocks.tile_columns)

    @cached_property
    def block_sizes(self) -> list[int]:
        """Floats of a worker's left block, right block and sums, each in whole cache lines."""
        blocks = (self.left_block, self.right_block)
        sizes = [block.layout.size + self.lanes if block else 0 for block in blocks]
        return [round_up(size, LINE) for size in (*sizes, self.sums.size if self.sums else 0)]

    @property
    def floats(self) -> int:
        """Scratch memory of one worker, in floats."""
        return round_up(sum(self.block_sizes), PAGE // FLOAT)
