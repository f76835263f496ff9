"""Sizes of chunked kernels, from their decisions: integers or, element by element, arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.residency import BlockResources
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.algebra import ZERO
from tilewright.spaces.derivation.recurrent.chunks import Chunks

BYTES = 2
"""Bytes of an element in shared memory."""
NUMBER = 4
"""Bytes of a number of a position."""
TURNS = 2
"""Places of the numbers of a chunk: those of the next one are computed while others are read."""
KEPT = 16
"""Bytes of the power of a whole chunk, which is aligned like a vector."""
EXPONENTS = 2
"""Words of the exponents of a segment's state."""
WEIGHT, GROWN, TERM, READING = "weight", "grown", "term", "reading"
"""Names of numbers: the weight of a term; how far its chunk's exponent has grown, and the exponents
of what is added and read beside that."""
READ, ADDED = "read", "added"
"""Names of numbers: powers by which the state is read, and a term is added to it."""


@dataclass(frozen=True)
class ChunkSizes(BlockResources):
    """Sizes of kernels of ``view`` under decisions ``c``."""

    view: Chunks

    @property
    def depth(self) -> int:
        """Terms of a score, in whole fragments."""
        return round_up(self.view.depth, FRAGMENT)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the numbers of each position that decays and weights come to."""
        names = [WEIGHT] * self.view.has_weight
        if (decay := self.view.decay) is not None:
            parts = {GROWN: decay.growth, TERM: decay.term, READING: decay.reading}
            names += [READ, ADDED, *(name for name, part in parts.items() if part != ZERO)]
        return tuple(names)

    def columns(self, c: Any) -> Any:
        """Return the columns of a block."""
        return c["warps"] * c["fragments"] * FRAGMENT

    def column_tiles(self, c: Any) -> Any:
        """Return the blocks of a product."""
        return ceil_div(self.view.width.extent, self.columns(c))

    def chunks(self, c: Any) -> Any:
        """Return the chunks of all positions."""
        return ceil_div(self.view.key.extent, c["chunk"])

    def blocks(self, c: Any) -> Any:
        """Return the blocks of all products, in each segment."""
        return self.column_tiles(c) * self.view.batches

    def segment_chunks(self, c: Any) -> Any:
        """Return the chunks of a segment."""
        return ceil_div(self.chunks(c), c["segments"])

    def state_words(self, c: Any) -> Any:
        """Return the words of the state of a block."""
        return self.columns(c) * self.depth

    def workspace_bytes(self, c: Any) -> Any:
        """Return the bytes of the workspace: states of all segments but the last, then their
        exponents."""
        words = self.state_words(c) + EXPONENTS
        return NUMBER * words * self.blocks(c) * (c["segments"] - 1)

    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""
        return c["warps"] * WARP

    def score_rows(self, c: Any) -> Any:
        """Return the warps that share the rows of a chunk's scores; others share its columns."""
        return np.minimum(c["warps"], c["chunk"] // FRAGMENT)

    def stage_bytes(self, c: Any) -> Any:
        """Return the bytes of the tiles of a chunk."""
        return c["chunk"] * (2 * self.depth + self.columns(c)) * BYTES

    def score_bytes(self, c: Any) -> Any:
        """Return the bytes of the weighed scores of a chunk, and of what rounding leaves of
        them."""
        return c["chunk"] * c["chunk"] * BYTES * (2 - self.view.has_rounded_scores)

    def turn_bytes(self, c: Any) -> Any:
        """Return the bytes of the numbers of a chunk."""
        kept = KEPT * (self.view.decay is not None)
        return c["chunk"] * NUMBER * len(self.numbers) + kept

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block."""
        rest = self.score_bytes(c) + TURNS * self.turn_bytes(c)
        return c["stages"] * self.stage_bytes(c) + rest

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers that a thread can do with.

        They hold the state, the sums of a chunk or its scores, fragments of both sides, and
        addresses.
        """
        rows, fragments = c["chunk"] // FRAGMENT, c["fragments"]
        state = fragments * self.depth // 2
        own = rows // self.score_rows(c)
        across = rows * self.score_rows(c) // c["warps"]
        scores = 8 * own * across + 4 * (own + across)
        sums = 8 * rows * fragments + 4 * np.maximum(rows + 2 * fragments, 4 * fragments)
        return state + np.maximum(scores, sums) + 44
