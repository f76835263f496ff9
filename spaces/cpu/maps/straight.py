"""Blocks of a map that are transposed in registers and written straight to the output.

All blocks are whole: if rows or columns leave a remainder, the last block begins earlier and writes
some elements a second time.

Strips of blocks are walked together, one below the other, so that loads use neighbouring lines,
which are in different banks of a cache. A strip may lag some blocks behind the one above it, and
comes to those at its beginning last: blocks that are written close in time then fall into different
sets of L1, even if rows are a power of two apart. What the next block reads and overwrites is
prefetched before a block is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial

STRIPS = (2, 4)
"""The numbers of strips of blocks that may be walked together."""


@dataclass(frozen=True)
class StraightBlocks:
    """Blocks of ``side`` rows and columns, which the C function ``tw_turn_whole_DTYPE`` transposes.

    ``strips`` strips are walked together, each ``skew`` blocks behind the one before it. Columns
    are ``read_step`` elements apart in the source, and rows ``written_step`` elements apart in the
    output. With ``ahead``, each block prefetches the next one. ``fits`` tells that rows and columns
    of all tiles are whole blocks.
    """

    side: int
    dtype: str
    read_step: int
    written_step: int
    strips: int
    skew: int
    ahead: bool
    fits: bool

    def lines(self, rows: int) -> list[str]:
        """Return the C that moves the tile at ``from`` to ``to``. The C variables ``rows`` and
        ``columns`` are its extents; there are at most as many rows as are given here."""
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
        """Write the prefetches of the block that comes next.

        It is that of the next strip; after the last strip, that of the first strip in the next
        turn; after the last turn, the first one of the next strips. The prefetches stand here and
        not in a function, for compilers drop calls of functions that only prefetch.
        """
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
        """Return the C expression of the number of blocks that cover an extent."""
        return f"({extent} + {self.side - 1}) / {self.side}"

    def _row(self, start: str) -> str:
        return self._within(start, "rows")

    def _column(self, block: str) -> str:
        return self._within(f"{self.side} * {block}", "columns")

    def _within(self, start: str, extent: str) -> str:
        return start if self.fits else f"tw_least({start}, {extent} - {self.side})"
