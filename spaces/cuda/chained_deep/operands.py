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
"""The C variable of the first term of a step that is to be copied."""
STEP = "depth_number"
"""That of the number of the step that is multiplied."""


@dataclass(frozen=True)
class DeepOperands(Operands):
    """Of a block: a stage has a step of a tile of keys, and of the rows if they do not stay.
    Matrices lie behind all stages."""

    block: DeepBlock

    @property
    def depth(self) -> Side:
        """Terms of a step."""
        return self._side(self.block.chained.depth, self.block.depth_step, NEXT_DEPTH)

    @cached_property
    def left(self) -> SharedTile:
        """The rows: those that stay come by all teams, those of a step by each team's own."""
        if not self.block.keeps_rows:
            return self._tile(self.block.chained.left, self.rows, self.depth, self.score_kind)
        every = self._side(self.block.chained.depth, self.block.steps * self.block.depth_step)
        tile = self._tile(self.block.chained.left, self.rows, every, self.score_kind)
        return replace(tile, threads=self.block.threads, thread=THREAD)

    def load_rows(self) -> list[str]:
        """Those that stay."""
        return super().load_rows() if self.block.keeps_rows else []

    def load_row_fragments(self, k: Index) -> list[str]:
        """From the stage, or from the rows that stay."""
        if not self.block.keeps_rows:
            return self.row_fragments.load(f"stage + {self.right('tile').bytes}", k)
        return super().load_row_fragments(index(STEP, self.block.steps) * self.steps + k)

    def load_step(self, stage: str) -> list[str]:
        """Start to move the next step to a stage."""
        right = self.right("next_tile")
        rows = [] if self.block.keeps_rows else self.left.copy(f"{stage} + {right.bytes}")
        return [*right.copy(stage), *rows]

    def matrix_places(self, stage: str) -> list[str]:
        """Behind all stages of the ring that begins at ``stage``."""
        return self._places(stage, self.block.matrices)
