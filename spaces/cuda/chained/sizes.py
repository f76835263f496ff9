"""Extents and resources of chained kernels: tiles, shared memory, registers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.chained.kinds import Kinds, kinds_of
from tilewright.spaces.cuda.chains.splits.leaving import SHARERS, row_words
from tilewright.spaces.cuda.chains.splits.splitting import shares, storing
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, FRAGMENT_BYTES
from tilewright.spaces.cuda.residency import BlockResources
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.chained.levels import Levels
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.dtypes import dtype


@dataclass(frozen=True)
class ChainedSizes(BlockResources):
    """Sizes of schedules of a program, from their decisions."""

    chained: Chained

    @property
    def decided(self) -> tuple[str, ...]:
        """The decisions that a tile's sizes depend on, in the order in which they are made."""
        weights = ("weight_dtype",) * (len(self.kinds.weights) > 1)
        return (
            "query_storage",
            "columns",
            *weights,
            "row_fragments",
            "keys",
            "warps",
            "warp_splits",
        )

    @cached_property
    def kinds(self) -> Kinds:
        """The dtypes in which products are multiplied."""
        found = kinds_of(self.chained)
        assert found
        return found

    @property
    def score_bytes(self) -> int:
        """Bytes of a factor of a score."""
        return dtype(self.kinds.scores).bytes

    def weight_bytes(self, c: Any) -> Any:
        """Return the bytes of a weight, which are those of a matrix's element."""
        first, *others = self.kinds.weights
        if not others:
            return dtype(first).bytes
        return np.where(c["weight_dtype"] == first, dtype(first).bytes, dtype(others[0]).bytes)

    @property
    def depth(self) -> int:
        """Terms of a score, padded to whole fragments."""
        return round_up(self.chained.depth.extent, FRAGMENT_BYTES // self.score_bytes)

    @property
    def width(self) -> int:
        """Columns of a sum, padded to whole fragments; 0 if there are no sums."""
        return round_up(self.chained.width.extent, FRAGMENT) if self.chained.weighings else 0

    def slices(self, c: Any) -> Any:
        """Return the parts that the width is cut into, a block for each."""
        return ceil_div(self.width, c["columns"]) if self.width else 1 + 0 * c["columns"]

    def rows(self, c: Any) -> Any:
        """Return the rows of a block."""
        return c["warps"] * c["row_fragments"] * FRAGMENT

    def row_tiles(self, c: Any) -> Any:
        """Return the blocks along the rows of a product."""
        return ceil_div(self.chained.row_count, self.rows(c))

    def blocks(self, c: Any) -> Any:
        """Return the number of all blocks."""
        return self.row_tiles(c) * self.slices(c) * self.chained.batches * c["splits"]

    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""
        return c["warps"] * c["warp_splits"] * WARP

    def left_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block's rows of the left operand."""
        return self.rows(c) * self.depth * self.score_bytes

    def stage_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a tile of keys, and of the matrices' rows for
        them."""
        columns = c["columns"] * len(self.chained.weighings)
        return c["keys"] * (self.depth * self.score_bytes + columns * self.weight_bytes(c))

    def steps(self, c: Any) -> Any:
        """Return the steps in which a tile of keys comes along its depth: one."""
        return 1 + 0 * c["keys"]

    @property
    def step(self) -> tuple[str, ...]:
        """The decisions that say what comes in a step."""
        return ("keys",)

    def all_steps(self, c: Any) -> Any:
        """Return the steps in which all keys come."""
        return self.steps(c) * ceil_div(self.chained.key.extent, c["keys"])

    def again_bytes(self, c: Any, running: Any, l2_bytes: float) -> Any:
        """Return the bytes that come from main memory another time: none.

        ``running`` blocks run at a time and L2 holds ``l2_bytes``. Templates with longer rows,
        whose keys come again, have numbers of their own.
        """
        return 0 * running

    def terms(self, c: Any) -> Any:
        """Return the terms of a score that are multiplied, padding included."""
        return self.depth + 0 * c["keys"]

    def tile_bytes(self, c: Any) -> Any:
        """Return the bytes that are copied to shared memory for a tile of keys."""
        return self.stage_bytes(c)

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block.

        Stages take the place of rows that registers hold, and parts that teams leave for each other
        take the place of all.
        """
        return np.maximum(self.tiles_bytes(c), self.left_parts_bytes(c) * (c["warp_splits"] > 1))

    def tiles_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory that a block needs until its tiles have passed."""
        stages = c["warp_splits"] * c["stages"] * self.stage_bytes(c)
        left = self.left_bytes(c)
        return np.where(c["query_storage"] == "registers", np.maximum(stages, left), stages + left)

    def left_parts_bytes(self, c: Any) -> Any:
        """Return the bytes that the threads of all teams leave for each other.

        They are the states of their rows and their places, whether they have seen a key, and sums.
        """
        return 4 * self.threads(c) * (self._left_states(c) + self.sums(c))

    def sent_bytes(self, c: Any) -> Any:
        """Return the bytes that the teams of a cluster send one of them, which merges some
        columns."""
        sharers = c["warp_splits"] * c["splits"]
        share = shares(self._pairs(c), sharers)
        sums = 4 * c["row_fragments"] * share * len(self.chained.weighings)
        return 4 * c["warps"] * WARP * sharers * (self._left_states(c) + sums)

    def all_sent_bytes(self, c: Any) -> Any:
        """Return the bytes that all teams of a block are sent, with their barriers."""
        return self.receiving_teams(c) * (self.sent_bytes(c) + 8)

    def receiving_teams(self, c: Any) -> Any:
        """Return the teams of a block that merge: of many with few columns, some do not."""
        return ceil_div(storing(self._pairs(c), c["warp_splits"] * c["splits"]), c["splits"])

    def _pairs(self, c: Any) -> Any:
        """Return the accumulators of a slice along the columns."""
        return c["columns"] * bool(self.chained.weighings) // 8

    def _left_states(self, c: Any) -> Any:
        """Return the words of a thread for the states of its rows."""
        return 2 * c["row_fragments"] * row_words(self._states) // SHARERS

    @property
    def _states(self) -> int:
        """Words that a row's states take, with the places of some."""
        return len(self.chained.scalars) + len(self.chained.found_places)

    def sums(self, c: Any) -> Any:
        """Return the registers of a thread's sums."""
        return c["row_fragments"] * c["columns"] // 2 * len(self.chained.weighings)

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers that a thread can do with.

        They hold sums, scores, weights of one step, rows that stay, fragments, states and
        addresses.
        """
        weights = max(len(Levels(self.chained).weights), 1)
        scores = c["row_fragments"] * c["keys"] // 2 * weights
        words = self.depth * self.score_bytes // 8
        held = np.where(
            c["query_storage"] == "registers", c["row_fragments"] * words, c["row_fragments"] * 4
        )
        states = 2 * c["row_fragments"] * (2 + 2 * self._states)
        return self.sums(c) + scores + held + states + 40
