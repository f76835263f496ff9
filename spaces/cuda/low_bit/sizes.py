"""Sizes of blocks of a product with packed codes, and what these take of a multiprocessor.

They are integers, or NumPy arrays of them, one for each schedule of a population.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.blocks.last_to_come import TICKET, TICKETS
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS

FLOAT = 4
ACTIVATION = 2
"""Bytes of an activation that tensor cores multiply."""
COLUMNS = 8
"""Rows of the product that an instruction of tensor cores multiplies: they are its columns."""
SPARE = 40
"""Registers of a thread beside its sums and words."""


@dataclass(frozen=True)
class CodedSizes:
    """The cut of ``product`` under decisions ``values``. Tiles of codes are 16 columns of the
    product and 64 of its depth."""

    product: CodedProduct
    values: Mapping[str, Any]

    # -- extents -----------------------------------------------------------------------------------

    @property
    def tiles(self) -> int:
        """Tiles of codes along the columns."""
        return ceil_div(self.product.columns, ROWS)

    @property
    def deep(self) -> int:
        """Tiles of codes along the depth."""
        return ceil_div(self.product.terms, DEPTH)

    @property
    def rows(self) -> Any:
        """Rows of a block."""
        return self.values["tile_rows"]

    @property
    def block_tiles(self) -> Any:
        """Tiles of codes along the columns of a block."""
        return self.values["warp_columns"] * self.values["warp_tiles"]

    @property
    def columns(self) -> Any:
        """Columns of a block."""
        return self.block_tiles * ROWS

    @property
    def threads(self) -> Any:
        """Threads of a block."""
        return WARP * self.values["warp_columns"] * self.values["warp_depth"]

    @property
    def share(self) -> Any:
        """Tiles along the depth of a block."""
        return ceil_div(self.deep, self.values["splits"])

    @property
    def tiles_at_a_time(self) -> Any:
        """Tiles along the depth whose activations a block has in shared memory at a time."""
        return np.minimum(self.values["block_depth"], self.share)

    @property
    def row_blocks(self) -> Any:
        """Blocks along the rows."""
        return ceil_div(self.product.row_count, self.rows)

    @property
    def column_blocks(self) -> Any:
        """Blocks along the columns."""
        return ceil_div(self.tiles, self.block_tiles)

    @property
    def blocks(self) -> Any:
        """Blocks of the grid."""
        return self.row_blocks * self.column_blocks * self.values["splits"]

    # -- groups ------------------------------------------------------------------------------------

    @property
    def is_grouped(self) -> bool:
        """Tell whether zero points or scales differ along the depth."""
        return self.product.group < self.product.terms

    @property
    def parts(self) -> int:
        """Parts of a tile's depth that have zero points and scales of their own."""
        return max(1, DEPTH // self.product.group) if self.is_grouped else 1

    @property
    def late(self) -> Any:
        """Tell whether scales multiply the sums of parts."""
        return np.asarray(self.values["scales"] == "late") & (self.product.scale is not None)

    # -- memory ------------------------------------------------------------------------------------

    @property
    def activation_bytes(self) -> Any:
        """Activations that a block has in shared memory."""
        return FLOAT * DEPTH * self.rows * self.values["block_depth"]

    @property
    def sum_bytes(self) -> Any:
        """Sums of all warps, which take the place of activations."""
        return FLOAT * self.values["warp_depth"] * self.rows * self.columns

    @property
    def table_at(self) -> Any:
        """The place of the table in shared memory."""
        return np.maximum(self.activation_bytes, self.sum_bytes)

    @property
    def word_at(self) -> Any:
        """The place of a block's ticket in shared memory."""
        codes = 2 ** dtype(self.product.codes.dtype).bits if self.product.table else 0
        return self.table_at + round_up(FLOAT * codes, TICKET)

    @property
    def shared_bytes(self) -> Any:
        """Shared memory of a block."""
        return self.word_at + TICKET * (self.values["splits"] > 1)

    @property
    def ticket_bytes(self) -> Any:
        """The start of the workspace: a ticket for the blocks that share columns."""
        tickets = round_up(FLOAT * self.row_blocks * self.column_blocks, TICKETS)
        return tickets * (self.values["splits"] > 1)

    @property
    def workspace_bytes(self) -> Any:
        """The tickets, and the sums of all blocks that share columns with others."""
        sums = FLOAT * self.blocks * self.rows * self.columns
        return self.ticket_bytes + sums * (self.values["splits"] > 1)

    @property
    def registers(self) -> Any:
        """Registers of a thread, more or less: sums, also those of parts, words, and what is
        shared in a part."""
        tiles = self.values["warp_tiles"]
        late = self.late & self.is_grouped
        sums = tiles * self.rows * HALVES * (1 + late)
        words = tiles * self.values["in_flight"] * dtype(self.product.codes.dtype).bits
        return SPARE + sums + 2 * self.rows + words + 2 * HALVES * tiles
