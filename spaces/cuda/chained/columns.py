"""The columns that a lane has of the sums of a slice.

Two accumulators of eight columns lie side by side. Fragments of 16 bits give a lane two neighbours
of each; those of bytes, which have two columns in one register
(:mod:`spaces.cuda.mma.byte_fragments`), give it four neighbours of both.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.chained.block import WIDE, Block
from tilewright.spaces.derivation.rounding.reductions import RAISED
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class Columns:
    """A lane's columns of the accumulators from ``first * each`` on.

    ``first`` is C text; if it is empty, all accumulators are meant.
    """

    block: Block
    first: str = ""
    each: int = 1

    @property
    def origin(self) -> str:
        """C text of a lane's first column, or of the one that it counts from."""
        if self.block.has_byte_weights:
            return "block_column + lane % 4 * 4"
        place = f" + {self.first} * {self.each * WIDE}" if self.first else ""
        return f"block_column{place} + lane % 4 * 2"

    @property
    def of_pair(self) -> str:
        """C text of the first of the two columns that the lane has of accumulator ``j``.

        It reads the variable ``column0``, which is :attr:`origin`.
        """
        if not self.block.has_byte_weights:
            return f"column0 + j * {WIDE}"
        place = f"({self.first} * {self.each} + j)" if self.first else "j"
        return f"column0 + {place} / 2 * 16 + {place} % 2 * 2"

    def settle(self) -> list[str]:
        """Print how sums of raised weights are scaled back, and their columns put in order.

        From byte fragments, the first accumulator has a lane's even columns and the second one the
        odd ones.
        """
        block = self.block
        if not block.has_byte_weights:
            return []
        lines = []
        for n in range(len(block.chained.weighings)):
            low, high = (f"sums{n}[f][j + {i}][h * 2 + {1 - i}]" for i in range(2))
            lines += [
                f"const float odd{n} = {high};",
                f"{high} = {low};",
                f"{low} = odd{n};",
                *(
                    f"sums{n}[f][j + {i}][h * 2 + {e}] *= {1 / RAISED!r}f;"
                    for i in range(2)
                    for e in range(2)
                ),
            ]
        rows = CUDA.loop("h", 2, lines, unroll=True)
        pairs = CUDA.loop("j", block.pairs, rows, step=2, unroll=True, brief=True)
        return CUDA.loop("f", block.slices, pairs, unroll=True, brief=True)
