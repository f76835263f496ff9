"""Blocks of a map that are transposed in registers and written straight to the output.

All blocks are whole: where rows or columns leave a remainder, the last block begins earlier, and
writes some elements a second time.

Strips of blocks are walked in pairs, one below the other, so that loads use both lines of a pair,
which different banks of a cache hold: back and forth, so that stores do as well, or with the second
strip some blocks behind, so that what is written at a time falls into different sets of L1 even
where rows are a power of two apart. What the next block overwrites is asked for before a block is
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spaces.algebra.index import Index
from spaces.algebra.integers import ceil_div
from spaces.algebra.mapping import repeat, spatial

STRIPS = 2
"""Strips of blocks that are walked together."""


@dataclass(frozen=True)
class StraightBlocks:
    """Blocks of ``side`` rows and columns for the C function ``tw_turn_straight_DTYPE``: the second
    strip of a pair is ``skew`` blocks behind the first. There are ``read_step`` elements from a
    column to the next where they are read, and ``written_step`` from a row to the next where they
    are written. With ``ahead`` each block asks for the next one."""

    side: int
    dtype: str
    read_step: int
    written_step: int
    skew: int
    ahead: bool
    fits: bool

    def lines(self, rows: int) -> list[str]:
        """C that moves the first ``rows`` and ``columns``, both C variables, of which the first is
        at most as given here, from ``from`` to ``to``."""
        pairs = repeat(ceil_div(rows, STRIPS * self.side)) * spatial(STRIPS * self.side)
        return pairs.emit(0, self._pair, extents=("rows",), prefix="b")

    def _pair(self, start: Sequence[Index]) -> list[str]:
        (first,), side = start, self.side
        blocks = "columns" if self.fits else f"(columns + {side - 1})"
        turns = f"(blocks + {self.skew} * two) << two" if self.skew else "blocks << two"
        return [
            f"const long two = rows - {first} > {side}, blocks = {blocks} / {side};",
            f"for (long n = 0; n < {turns}; n++) {{",
            f"  const long strip = {self._strip('n')}, block = {self._block('n', 'strip')};",
            *(["  if (block < 0 || block >= blocks) continue;"] if self.skew else []),
            *(self._ask(first) if self.ahead else []),
            f"  const long i = {self._row(first, 'strip')}, j = {self._column('block')};",
            f"  tw_turn_straight_{self.dtype}(",
            f"      from + i + j * {self.read_step}, {self.read_step},",
            f"      to + i * {self.written_step} + j, {self.written_step});",
            "}",
        ]

    def _ask(self, first: Index) -> list[str]:
        """Asks for the block of the next turn, here and not in a function: compilers leave out
        calls of functions that do nothing else."""
        each = (f"  #pragma GCC unroll {self.side}", f"  for (long s = 0; s < {self.side}; s++)")
        return [
            "  const long m = n + 1;",
            f"  const long below = {self._strip('m')}, next = {self._block('m', 'below')};",
            f"  const long k = {self._row(first, 'below')}, l = {self._column('next')};",
            *each,
            f"    __builtin_prefetch(from + k + (l + s) * {self.read_step});",
            *each,
            f"    __builtin_prefetch(to + (k + s) * {self.written_step} + l, 1);",
        ]

    def _strip(self, turn: str) -> str:
        """C expression: which of the strips has a turn."""
        return f"two & {turn}" if self.skew else f"two & ({turn} ^ ({turn} >> 1))"

    def _block(self, turn: str, strip: str) -> str:
        """C expression: the block of a strip in a turn."""
        return f"({turn} >> two)" + (f" - {self.skew} * {strip}" if self.skew else "")

    def _row(self, first: Index, strip: str) -> str:
        """C expression: the first row of a strip of the pair that begins at ``first``."""
        return self._within(f"{first} + {self.side} * {strip}", "rows")

    def _column(self, block: str) -> str:
        """C expression: the first column of a block."""
        return self._within(f"{self.side} * {block}", "columns")

    def _within(self, start: str, extent: str) -> str:
        return start if self.fits else f"tw_least({start}, {extent} - {self.side})"
