"""Blocks that are transposed in registers and written where they are wanted, all of them whole.

What each reads and overwrites is asked for while the one before is transposed: lines that are a
row apart follow no pattern that a processor foresees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spaces.algebra.index import Index
from spaces.algebra.mapping import repeat, spatial
from spaces.algebra.mapping_emit import indented


@dataclass(frozen=True)
class StraightBlocks:
    """Blocks of ``side`` rows and columns for the C ``function``; elements from a column to the
    next where they are read, and from a row to the next where they are written."""

    side: int
    function: str
    read_step: int
    written_step: int

    def lines(self, rows: int, columns: int) -> list[str]:
        """C that moves the first ``rows`` and ``columns``, both C variables that may be less, from
        ``from`` to ``to``."""
        blocks = repeat(rows // self.side, columns // self.side) * spatial(self.side, self.side)
        return blocks.emit(0, self._block, extents=("rows", "columns"), prefix="b")

    def _block(self, start: Sequence[Index]) -> list[str]:
        i, j = start
        read = f"from + {(j * self.read_step + i).text}"
        written = f"to + {(i * self.written_step + j).text}"
        ahead = f"{read} + {self.side * self.read_step} + n * {self.read_step}"
        return [
            f"for (long n = 0; n < {self.side}; n++) {{",
            *indented(
                [
                    f"__builtin_prefetch({ahead});",
                    f"__builtin_prefetch({written} + {self.side} + n * {self.written_step}, 1);",
                ]
            ),
            "}",
            f"{self.function}({read}, {self.read_step}, {written}, {self.written_step});",
        ]
