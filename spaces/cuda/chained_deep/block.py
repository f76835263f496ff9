"""The plan of one block of a deep chained kernel, which extends that of any chained kernel."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.chained.block import Block
from tilewright.spaces.cuda.chained_deep.sizes import SHARED, DeepSizes
from tilewright.spaces.cuda.plan import Number, Size


@dataclass(frozen=True)
class DeepBlock(Block):
    """A block of a kernel under the decisions ``values``."""

    sizes: DeepSizes

    depth_step = Number()

    steps = Size()
    ring_bytes = Size()

    @property
    def keeps_rows(self) -> bool:
        """True if all terms of the rows stay in shared memory."""
        return self.values["query_storage"] == SHARED

    @property
    def matrices(self) -> int:
        """Offset of the matrices from a team's ring: they lie behind the stages."""
        return self.number("stages") * self.stage_bytes
