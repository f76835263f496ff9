"""The rows of a block of a chained kernel: where they are, and each lane's own."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.chained.block import Block
from tilewright.spaces.cuda.chains.ends import keys_of, products_of, rows_of
from tilewright.spaces.cuda.chains.lanes import ROWS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.derivation.chained.text import key_bounds, split
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class BlockRows:
    """The rows of ``block``."""

    block: Block

    def place(self, number: str) -> list[str]:
        """Print the declarations of the product, rows and columns of the block ``number``.

        If keys are split, ``number`` leaves out the part.
        """
        sizes, values = self.block.sizes, self.block.values
        chained, slices = self.block.chained, int(sizes.slices(values))
        tiles, batches = rows_of(chained).tiles(self.block.rows), products_of(chained).count
        order = str(values["order"])
        integer = self.block.integer
        if order.startswith("rows"):
            tile, batch = f"block % {tiles}", f"block / {tiles}"
        else:
            tile, batch = f"block / {batches}", f"block % {batches}"
        if order.endswith("down"):
            tile = f"{rows_of(chained).last_tile(self.block.rows)} - {tile}"
        row = f"first_row + warp * {self.block.slices * FRAGMENT}"
        return [
            f"const int block = {number} / {slices};",
            f"const int block_column = {number} % {slices} * {self.block.columns};",
            f"const int first_row = ({tile}) * {self.block.rows}, warp_row = {row};",
            f"const {integer} batch = {batch};",
            *split("batch", self.block.chained.batch, self.block.batch.names, integer),
        ]

    def begin(self) -> list[str]:
        """Print the declarations of a lane's rows before the first tile: axes, key bounds,
        states."""
        count, chained, integer = ROWS * self.block.slices, self.block.chained, self.block.integer
        local = {part.name: f"q{i}" for i, part in enumerate(chained.rows)}
        last = rows_of(chained).last
        body = [
            "const int own = warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4;",
            f"const {integer} row = tw_least(own, {last});",
            *split("row", chained.rows, local, integer),
            *(f"p{i}[r] = q{i};" for i in range(len(local))),
            f"{integer} begin, end;",
            *key_bounds(
                chained,
                chained.bounds,
                "begin",
                "end",
                self.block.row.text,
                keys_of(chained).count,
            ),
            "low[r] = (int)begin;",
            "high[r] = (int)tw_most(end, 0);",
            *self.block.chain.of_rows(),
        ]
        return [
            *(f"{integer} p{i}[{count}];" for i in range(len(local))),
            f"int low[{count}], high[{count}];",
            *self.block.chain.declared(),
            *CUDA.loop("r", count, body, unroll=True),
        ]
