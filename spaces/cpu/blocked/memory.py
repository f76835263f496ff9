"""The scratch memory of a product's workers, and the layouts in which they read its operands."""

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
    """The packed blocks and sums of ``product`` under the decisions ``values``, cut into
    ``blocks``."""

    product: Product
    values: Mapping[str, Value]
    lanes: int
    blocks: Blocking

    @property
    def terms_a_step(self) -> int:
        """The number of terms that one step along the depth multiplies."""
        return 2 if self.values["multiply"] == "dot" else 1

    @property
    def packed(self) -> str:
        """The type of packed elements, each of 4 bytes; sizes of blocks count these."""
        return PAIR if self.values["multiply"] == "dot" else "float32"

    @property
    def steps(self) -> int:
        """The number of steps of the whole depth."""
        return ceil_div(self.product.terms, self.terms_a_step)

    @property
    def block_steps(self) -> int:
        """The number of steps of a block of the depth."""
        return int(self.blocks.block_depth) // self.terms_a_step

    @cached_property
    def left(self) -> Stream:
        """The left operand as tiles or packing functions read it."""
        return stream(self.product, self.product.left, self.terms_a_step)

    @cached_property
    def right(self) -> Stream:
        """The right operand as tiles or packing functions read it."""
        return stream(self.product, self.product.right, self.terms_a_step)

    @cached_property
    def left_block(self) -> LeftBlock | None:
        """The packed block of the left operand; None if it is read in place."""
        if not self.values["pack_left"]:
            return None
        b = self.blocks
        panels = b.block_rows // b.tile_rows
        return LeftBlock(panels, b.tile_rows, self.block_steps, self.lanes, self.packed, self.left)

    @cached_property
    def right_block(self) -> RightBlock | None:
        """The packed block of the right operand; None if it is read in place."""
        if not self.values["pack_right"]:
            return None
        b = self.blocks
        panels = b.block_columns // b.tile_columns
        return RightBlock(
            panels, b.tile_columns, self.block_steps, self.lanes, self.packed, self.right
        )

    @cached_property
    def ahead(self) -> Ahead | None:
        """The part of the right operand that is prefetched; None if none is."""
        if not self.values["prefetch"]:
            return None
        return Ahead(self.product, self.blocks, bool(self.values["pack_right"]))

    @cached_property
    def sums(self) -> Strided | None:
        """The layout of a worker's partial sums; None if the output holds them."""
        if self.product.output.dtype == "float32":
            return None
        if self.blocks.depth_blocks > 1:
            return row_major(self.blocks.chunk_rows, self.blocks.chunk_columns)
        return row_major(self.blocks.tile_rows, self.blocks.tile_columns)

    @cached_property
    def block_sizes(self) -> list[int]:
        """The floats of a worker's left block, right block and sums, each in whole cache lines."""
        blocks = (self.left_block, self.right_block)
        sizes = [block.layout.size + self.lanes if block else 0 for block in blocks]
        return [round_up(size, LINE) for size in (*sizes, self.sums.size if self.sums else 0)]

    @property
    def floats(self) -> int:
        """Floats of the scratch memory of one worker."""
        return round_up(sum(self.block_sizes), PAGE // FLOAT)
