"""Extents and resources of deep chained kernels: steps of the depth, shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.chained.sizes import ChainedSizes

STAGES, SHARED = "stages", "shared"
"""Values of ``query_storage``: rows come again with each step, or all of them stay."""


@dataclass(frozen=True)
class DeepSizes(ChainedSizes):
    """Sizes of schedules of a program, from their decisions."""

    @property
    def decided(self) -> tuple[str, ...]:
        """The decisions that a tile's sizes depend on, in the order in which they are made."""
        return (*super().decided, "depth_step")

    @property
    def step(self) -> tuple[str, ...]:
        """The decisions that say what comes in a step."""
        return ("keys", "depth_step")

    def steps(self, c: Any) -> Any:
        """Return the steps of the depth."""
        return ceil_div(self.chained.depth.extent, c["depth_step"])

    def terms(self, c: Any) -> Any:
        """Return the terms of all steps."""
        return self.steps(c) * c["depth_step"]

    def left_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block's rows of the left operand, if they stay."""
        return self.rows(c) * self.terms(c) * self.score_bytes * (c["query_storage"] == SHARED)

    def stage_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a step of keys, and of rows if they come again."""
        high = c["keys"] + self.rows(c) * (c["query_storage"] == STAGES)
        return high * c["depth_step"] * self.score_bytes

    def matrix_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of the matrices' rows for a tile of keys."""
        return c["keys"] * c["columns"] * len(self.chained.weighings) * self.weight_bytes(c)

    def ring_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a team: all its stages, and matrices once."""
        return c["stages"] * self.stage_bytes(c) + self.matrix_bytes(c)

    def again_bytes(self, c: Any, running: Any, l2_bytes: float) -> Any:
        """Return the bytes that come from main memory another time.

        The matrix of keys does so once for all blocks that are ``running`` at a time, and rows that
        come again with each tile do if L2, with ``l2_bytes``, does not hold them.
        """
        blocks, row = self.blocks(c), self.chained.depth.extent * self.score_bytes
        keys = self.chained.batches * self.chained.key.extent * row
        rows = self.rows(c) * row
        tiles = np.maximum(ceil_div(self.chained.key.extent, c["keys"]) / c["splits"], 1)
        missed = (c["query_storage"] == STAGES) & (running / c["splits"] * rows > l2_bytes)
        return (ceil_div(blocks, running) - 1) * keys + missed * blocks * (tiles - 1) * rows

    def tile_bytes(self, c: Any) -> Any:
        """Return the bytes that are copied to shared memory for a tile of keys."""
        return self.steps(c) * self.stage_bytes(c) + self.matrix_bytes(c)

    def tiles_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of all teams' stages, and of rows that stay."""
        return c["warp_splits"] * self.ring_bytes(c) + self.left_bytes(c)
