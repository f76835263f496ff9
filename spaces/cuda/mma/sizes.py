"""Resources of ``mma.sync`` schedules: tiles of warps and blocks, shared memory, registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.cuda.blocks.sizes import RingSizes
from tilewright.spaces.cuda.mma.accumulators import slab_bytes
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class MmaSizes(RingSizes):
    """Sizes of ``mma.sync`` schedules, from their decisions."""

    @property
    def bytes(self) -> int:
        """Bytes of an element of A and B."""
        return self.product.left.element.bytes

    def block(self, c: Any) -> tuple[Any, Any]:
        """Return rows and columns of a block's tile."""
        return c["warp_rows"] * c["tile_rows"], c["warp_columns"] * c["tile_columns"]

    def stages(self, c: Any) -> Any:
        """Return the steps of depth that shared memory holds."""
        return c["stages"]

    def tile_bytes(self, width: Any, deep: bool, c: Any) -> Any:
        """Return the bytes of a tile, which is dense however it lies."""
        return width * c["depth"] * self.bytes

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block: the ring, or sums to be stored."""
        slabs = c["warp_rows"] * c["warp_columns"] * slab_bytes(c["tile_columns"])
        return np.maximum(self.ring_bytes(c), (c["store_path"] == "shared") * slabs)

    def passes_registers(self, operand: Array) -> bool:
        """Return true if ``cp.async`` cannot copy an input's tiles.

        Rows are then aligned to less than 4 bytes, or elements must be transposed and have a size
        that ``ldmatrix`` does not transpose.
        """
        product = self.product
        deep = product.left_runs_deep if operand is product.left else product.right_runs_deep
        crosswise = self.bytes != 2 and not deep
        return crosswise or self.vector(operand) * self.bytes < 4

    def sums(self, c: Any) -> Any:
        """Return the registers of a thread's sums."""
        return c["tile_rows"] * c["tile_columns"] // 32

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers with which a thread does not spill.

        They hold sums, fragments of one step, tiles in transit, and addresses. Calibrated on what
        NVRTC 13.5 needs.
        """
        fragments = (c["tile_rows"] + c["tile_columns"]) // FRAGMENT * 4
        pieces = c["depth"] * self.bytes // FRAGMENT
        functions = 8 * self.product.is_fused
        total = self.sums(c) + fragments + pieces + functions + 32
        for operand, width in zip(
            (self.product.left, self.product.right), self.block(c), strict=True
        ):
            if self.passes_registers(operand):
                total = total + self.held(operand, width, c) + 16
            total = total + self.tables(operand, width, c)
        return total
