"""The operands of a deep chained kernel: a step of the depth in each stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.cuda.blocks.unrolled import THREAD
from tilewright.spaces.cuda.chained.operands import Operands
from tilewright.spaces.cuda.chained.tiles import SharedTile, Side
from tilewright.spaces.cuda.chained_deep.block import DeepBlock

NEXT_DEPTH = "next_depth"
"""The C variable of the first term of the step that is copied next."""
STEP = "depth_number"
"""The C variable of the number of the step that is multiplied."""


@dataclass(frozen=True)
class DeepOperands(Operands):
    """The operands of a block, whose stages have a step of a tile of keys each.

    A stage also has the same step of the rows if they do not stay. Matrices lie behind all stages.
    """

    block: DeepBlock

    @property
    def depth(self) -> Side:
        """The side of a tile along the terms of a step."""
        return self._side(self.block.chained.depth, self.block.depth_step, NEXT_DEPTH)

    @cached_property
    def left(self) -> SharedTile:
        """The rows: all teams copy those that stay, each team its own of a step."""
        if not self.block.keeps_rows:
            return self._tile(self.block.chained.left, self.rows, self.depth, self.score_kind)
        every = self._side(self.block.chained.depth, self.block.steps * self.block.depth_step)
        tile = self._tile(self.block.chained.left, self.rows, every, self.score_kind)
        return replace(tile, threads=self.block.threads, thread=THREAD)

    def load_rows(self) -> list[str]:
        """Print the copy of rows that stay."""
        return super().load_rows() if self.block.keeps_rows else []

    def load_row_fragments(self, k: Index) -> list[str]:
        """Print how rows' fragments are loaded, from the stage or from the rows that stay."""
        if not self.block.keeps_rows:
            return self.row_fragments.load(f"stage + {self.right('tile').bytes}", k)
        return super().load_row_fragments(index(STEP, self.block.steps) * self.steps + k)

    def load_step(self, stage: str) -> list[str]:
        """Print how copies of the next step to a stage are started."""
        right = self.right("next_tile")
        rows = [] if self.block.keeps_rows else self.left.copy(f"{stage} + {right.bytes}")
        return [*right.copy(stage), *rows]

    def matrix_places(self, stage: str) -> list[str]:
        """Return the matrices' places, behind all stages of the ring that begins at ``stage``."""
        return self._places(stage, self.block.matrices)
