"""Sizes of a pass of a pairwise kernel, from its decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.pairwise.passes import Pass, padded
from tilewright.spaces.cuda.residency import BlockResources
from tilewright.spaces.cuda.target import WARP

BYTES = 2
"""Bytes of an element in shared memory."""
NUMBER = 4
"""Bytes of a number of a point."""


@dataclass(frozen=True)
class PassSizes(BlockResources):
    """Sizes of a pass under decisions ``c``, by their names without that of the pass."""

    of: Pass

    def stay(self, c: Any) -> Any:
        """Return the points that stay in a block."""
        return c["warps"] * c["fragments"] * FRAGMENT

    def stay_tiles(self, c: Any) -> Any:
        """Return the blocks of a product."""
        return ceil_div(self.of.stay_count, self.stay(c))

    def blocks(self, c: Any) -> Any:
        """Return the blocks of all products."""
        return self.stay_tiles(c) * self.of.pairwise.batches

    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""
        return c["warps"] * WARP

    def stay_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of the points that stay."""
        return self.stay(c) * BYTES * sum(padded(part) for _, part in self.of.stay_matrices)

    def stage_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a tile of points that pass."""
        wide = BYTES * sum(padded(part) for _, part in self.of.pass_matrices)
        return c["tile"] * (wide + NUMBER * len(self.of.numbers))

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block."""
        return c["stages"] * self.stage_bytes(c) + self.stay_bytes(c)

    @property
    def depth(self) -> int:
        """Terms of all scores of a pair."""
        return sum(padded(score.depth) for score in self.of.scores)

    @property
    def width(self) -> int:
        """Columns of all sums of a point."""
        return sum(padded(each.width) for each in self.of.sums)

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers that a thread can do with.

        They hold sums, the pairs of a tile, fragments of both sides, and addresses.
        """
        pairs = c["tile"] // 2 * self.of.tiles
        points = len(self.of.staying) + 1 + len(self.of.pairwise.scalars)
        return c["fragments"] * (self.width // 2 + pairs + 4 + 2 * points) + 40

    def pass_tiles(self, c: Any) -> Any:
        """Return the tiles in which all points pass."""
        return ceil_div(self.of.pass_count, c["tile"])
