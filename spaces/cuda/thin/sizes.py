"""Extents and resources of thin schedules, for a single one or for a whole population."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.blocks.finish import sum_dtype
from tilewright.spaces.cuda.blocks.sizes import BlockSizes
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.cuda.thin.product import FRAGMENT, MMA_TYPES, ThinProduct
from tilewright.spaces.cuda.thin.ways import by_way
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.workloads.product import Product

BANKS = 128
"""Bytes of all banks of shared memory."""


@dataclass(frozen=True)
class ThinSizes(BlockSizes):
    """Sizes of thin schedules, from their decisions."""

    product: Product

    @cached_property
    def thin(self) -> ThinProduct:
        """The product along its thin side."""
        return ThinProduct(self.product)

    @property
    def bytes(self) -> int:
        """Bytes of an element of the operands."""
        return self.product.left.element.bytes

    @property
    def sum_bytes(self) -> int:
        """Bytes of a sum."""
        return dtype(sum_dtype(self.product)).bytes

    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""
        return c["warp_columns"] * c["warp_depth"] * WARP

    def columns(self, c: Any) -> Any:
        """Return the columns of a block."""
        return c["warp_columns"] * c["lane_columns"] * c["thread_columns"]

    def depth(self, c: Any) -> Any:
        """Return the terms of a step."""
        return c["warp_depth"] * (WARP // c["lane_columns"]) * c["thread_depth"]

    def steps(self, c: Any) -> Any:
        """Return the steps of the whole depth."""
        return ceil_div(self.thin.terms, self.depth(c))

    def tiles(self, c: Any) -> Any:
        """Return the tiles of columns of all products of a batch."""
        return ceil_div(self.thin.many, self.columns(c)) * self.product.batches

    def block(self, c: Any) -> tuple[Any, Any]:
        """Return rows and columns of the output in a block's tile."""
        few, columns = self.thin.few, self.columns(c)
        return (few, columns) if self.thin.rows_are_few else (columns, few)

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block.

        It holds the block's share of the small operand and slabs, then its warps' sums.
        """
        terms = ceil_div(self.steps(c), c["splits"]) * self.depth(c)
        small = self.thin.few * self.small_pitch(terms) * (c["small_operand"] == "shared")
        slabs = self.columns(c) * c["warp_depth"] * self.slab_pitch(c["thread_depth"])
        sums = c["warp_depth"] * self.thin.few * self.columns(c) * self.sum_bytes
        return np.maximum(small + slabs * (c["load_order"] == "rows"), sums)

    def small_pitch(self, terms: Any) -> Any:
        """Return the bytes from one row of ``terms`` elements of the small operand to the next.

        Rows that lanes of ``mma.sync`` read at once fall into different banks.
        """
        bytes = round_up(terms * self.thin.small.element.bytes, BANKS)
        return bytes + (self.thin.few > 1) * BANKS // 2

    def slab_pitch(self, terms: Any) -> Any:
        """Return the bytes between columns in a slab; a thread has ``terms`` terms of each."""
        return 4 * terms * self.thin.large.element.bytes + 64

    def flight(self, c: Any) -> Any:
        """Return the bytes of the large operand that a thread reads ahead."""
        return c["thread_columns"] * c["thread_depth"] * self.bytes * c["in_flight"]

    def sums(self, c: Any) -> Any:
        """Return the registers of a thread's sums."""
        few, columns = self.thin.few, c["thread_columns"]
        registers = self.sum_bytes // 4
        return by_way(c, lambda w: w.sums(few, columns) * (1 if w.matrices else registers))

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers with which a thread does not spill.

        They hold sums, elements of both operands, and addresses. Calibrated on what NVRTC 13.5
        needs.
        """
        matrices = by_way(c, lambda way: way.matrices)
        rows = np.where(matrices, ceil_div(self.thin.few, FRAGMENT), self.thin.few)
        from_memory = c["small_operand"] == "memory"
        run = self.thin.large_vector if self.thin.large_runs_deep else c["thread_depth"]
        terms = np.where(from_memory, c["thread_depth"] * c["in_flight"], run)
        words = ceil_div(rows * terms * self.bytes, 4)
        numbers = np.where(matrices, 0, self.thin.few * (self.sum_bytes // 4) + 8)
        own = (c["load_order"] == "rows") * 4 * c["thread_columns"]
        addresses = np.where(c["small_operand"] == "cache", 20, 30)
        return self.sums(c) + self.flight(c) // 4 + words + numbers + own + addresses

    @property
    def serves_rows(self) -> bool:
        """True if the large operand can be read by rows, for ``mma.sync``."""
        return self.serves_matrices and self.thin.large_runs_deep and self.thin.large_vector == 8

    @property
    def serves_matrices(self) -> bool:
        """True if ``mma.sync`` multiplies these elements."""
        return self.thin.large.dtype in MMA_TYPES and self.thin.small.dtype in MMA_TYPES
