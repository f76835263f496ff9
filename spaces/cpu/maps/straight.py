"""Blocks of a map that are transposed in registers and written straight to the output.

All blocks are whole: where rows or columns leave a remainder, the last block begins earlier, and
writes some elements a second time.

Strips of blocks are walked together, one below the other, so that loads use neighbouring lines,
which different banks of a cache hold. Each strip may be some blocks behind the one above it, and
comes to those at its beginning in the end: so what is written at a time falls into different sets
of L1 even where rows are a power of two apart. What the next block reads and overwrites is asked
for before a block is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial

STRIPS = (2, 4)
"""Strips of blocks that may be walked together."""


@dataclass(frozen=True)
class StraightBlocks:
    """Blocks of ``side`` rows and columns for the C function ``tw_turn_whole_DTYPE``, so many
    ``strips`` together, each ``skew`` blocks behind the one before it. There are ``read_step``
    elements from a column to the next where they are read, and ``written_step`` from a row to the
    next where they are written. With ``ahead`` each block asks for the next one. If it ``fits``,
    rows and columns of all tiles are whole blocks."""

    side: int
    dtype: str
    read_step: int
    written_step: int
    strips: int
    skew: int
    ahead: bool
    fits: bool

    def lines(self, rows: int) -> list[str]:
        """C that moves the first ``rows`` and ``columns``, both C variables, of which the first is
        at most as given here, from ``from`` to ``to``."""
        height = self.strips * self.side
        groups = repeat(ceil_div(rows, height)) * spatial(height)
        return groups.emit(0, self._together, extents=("rows",), prefix="b")

    def _together(self, start: Sequence[Index]) -> list[str]:
        (first,) = start
        wrapped = "turn - apart * strip"
        row, column = self._row(f"{first} + {self.side} * strip"), self._column("block")
        return [
            f"const long strips = tw_least({self.strips}, {self._blocks(f'(rows - {first})')});",
            f"const long blocks = {self._blocks('columns')};",
            f"const long apart = blocks > {self.skew * (self.strips - 1)} ? {self.skew} : 0;",
            "for (long turn = 0; turn < blocks; turn++)",
            "  for (long strip = 0; strip < strips; strip++) {",
            f"    const long block = {wrapped} + ({wrapped} < 0 ? blocks : 0);",
            *(self._ask(first) if self.ahead else []),
            f"    const long i = {row}, j = {column};",
            f"    tw_turn_whole_{self.dtype}(",
            f"        from + i + j * {self.read_step}, {self.read_step},",
            f"        to + i * {self.written_step} + j, {self.written_step});",
            "  }",
        ]

    def _ask(self, first: Index) -> list[str]:
        """Asks for the block of the next turn, behind the last one for the first of the strips that
        follow: here and not in a function, for compilers leave out calls of functions that do
        nothing else."""
        side = self.side
        each = (f"    #pragma GCC unroll {side}", f"    for (long s = 0; s < {side}; s++)")
        row, column = self._row(f"{first} + {side} * under"), self._column("over")
        return [
            "    const int last = strip + 1 == strips;",
            "    const long below = last ? 0 : strip + 1, next = turn + last - apart * below;",
            f"    const long under = next < blocks ? below : {self.strips};",
            "    const long over = next < 0 ? next + blocks : next < blocks ? next : 0;",
            f"    const long k = {row}, l = {column};",
            *each,
            f"      __builtin_prefetch(from + k + (l + s) * {self.read_step});",
            *each,
            f"      __builtin_prefetch(to + (k + s) * {self.written_step} + l, 1);",
        ]

    def _blocks(self, extent: str) -> str:
        """C expression: blocks that cover an extent."""
        return f"({extent} + {self.side - 1}) / {self.side}"

    def _row(self, start: str) -> str:
        return self._within(start, "rows")

    def _column(self, block: str) -> str:
        return self._within(f"{self.side} * {block}", "columns")

    def _within(self, start: str, extent: str) -> str:
        return start if self.fits else f"tw_least({start}, {extent} - {self.side})"
