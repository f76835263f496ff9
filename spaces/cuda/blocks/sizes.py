"""Extents and resources of blocks, for the decisions of one schedule or columns of many."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.blocks.copies.tile_copy import runs_deep, source_of
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.residency import BlockResources
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.workloads.array import Array

ALIGNMENT = 128
"""Alignment in bytes of a tile in shared memory."""


@dataclass(frozen=True)
class BlockSizes(BlockResources):
    """Extents and resources of schedules of ``product``, from their decisions."""

    product: Tiled

    @abstractmethod
    def block(self, c: Any) -> tuple[Any, Any]:
        """Return the rows and columns of a block's tile."""

    def opened(self) -> Self:
        """Return the same for kernels that take their number of rows at each call."""
        return replace(self, product=replace(self.product, is_open=True))

    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""
        return c["warp_rows"] * c["warp_columns"] * WARP

    def vector(self, operand: Array) -> int:
        """Return the elements of an input's widest global accesses, tiles aside."""
        return int(np.gcd(16 // operand.element.bytes, self.product.run(operand)))

    def held(self, operand: Array, width: Any, c: Any) -> Any:
        """Return the elements of a tile of ``width`` rows or columns that pass through a thread."""
        slow, fast, vector = self._turns(operand, width, c)
        return slow * fast * vector

    def tables(self, operand: Array, width: Any, c: Any) -> Any:
        """Return the registers that say where a thread's rows or columns of such a tile are.

        0 for a matrix, along which pointers walk.
        """
        if source_of(self.product, operand) is not None:
            return 0
        assert isinstance(self.product, ImplicitProduct)
        slow, fast, _ = self._turns(operand, width, c)
        indices = len(self.product.gathered[operand is self.product.right].indices)
        return indices * (slow if runs_deep(self.product, operand) else fast) + 2 * indices

    def _turns(self, operand: Array, width: Any, c: Any) -> tuple[Any, Any, Any]:
        """Return the vectors of a tile along slow and fast that a thread moves, and a vector's
        elements."""
        deep = runs_deep(self.product, operand)
        tile_fast, tile_slow = (c["depth"], width) if deep else (width, c["depth"])
        vector = np.gcd(self.vector(operand), tile_fast)
        fast = np.gcd(tile_fast // vector, self.threads(c))
        slow_turns = ceil_div(tile_slow, self.threads(c) // fast)
        return slow_turns, tile_fast // vector // fast, vector


@dataclass(frozen=True)
class RingSizes(BlockSizes):
    """Extents and resources of blocks with a ring of stages in shared memory.

    Each stage has both operands' tiles, the left one first.
    """

    @abstractmethod
    def stages(self, c: Any) -> Any:
        """Return the number of stages."""

    @abstractmethod
    def tile_bytes(self, width: Any, deep: bool, c: Any) -> Any:
        """Return the bytes of a tile of ``width`` rows or columns.

        ``deep`` is true if the operand runs along the depth in memory.
        """

    def left_bytes(self, c: Any) -> Any:
        """Return the bytes of the left tile, padded so that the right one is aligned."""
        left = self.tile_bytes(self.block(c)[0], self.product.left_runs_deep, c)
        return round_up(left, ALIGNMENT)

    def stage_bytes(self, c: Any) -> Any:
        """Return the bytes of a stage."""
        right = self.tile_bytes(self.block(c)[1], self.product.right_runs_deep, c)
        return self.left_bytes(c) + round_up(right, ALIGNMENT)

    def ring_bytes(self, c: Any) -> Any:
        """Return the bytes of all stages."""
        return self.stages(c) * self.stage_bytes(c)
