"""The second kernel of a reduced product: the lanes of a warp share the parts of a row.

A product may have few rows, and each of them hundreds of parts. As task mappings: spatial(blocks) *
spatial(rows, lanes) * repeat(batches of parts).
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.chains.lanes import ROWS
from tilewright.spaces.cuda.chains.splits.leaving import SHARERS
from tilewright.spaces.cuda.chains.splits.state_merging import StateMerging
from tilewright.spaces.cuda.hopper.tile import BLOCK
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.cuda.warpgroups import GROUP


@dataclass(frozen=True)
class RowMerging(StateMerging):
    """The merge of parts that warpgroups left of 64 rows each; a lane has one row, ``own``."""

    @property
    def sharers(self) -> int:
        """Lanes that may share a row."""
        return WARP

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return GROUP // self.lanes

    @property
    def _state_words(self) -> int:
        """Words of states of each thread that left them."""
        return ROWS * self.row_words // SHARERS

    def parts(self) -> list[str]:
        """Print the declaration of ``parts``, the address of the row's states in the first part.

        Threads that left them had two rows each, eight apart.
        """
        size, words = self.own_bytes // 4, self.row_words
        half = BLOCK // 8 // ROWS  # warps of a slice of rows
        row = f"(own / 8 % {ROWS} * {GROUP // SHARERS} + own / 16 % {half} * 8 + own % 8) * {words}"
        return [
            f"float *const parts = (float *)({self.crew.workspace} + {self.zeroed_bytes})",
            f"    + (i64)({self.crew.tile}) * {self.split * size} + {row};",
        ]

    def states_at(self, first: int) -> str:
        """Return C text of the address of the row's states from ``first`` on."""
        return f"mine + {first}"
