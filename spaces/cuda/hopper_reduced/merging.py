"""The second kernel of a reduced product: lanes share the parts of a row, and merge what they have.

A row may have hundreds of parts and a product few rows: a lane that merged all of them would wait
for memory time after time, in few blocks. As task mappings: spatial(blocks) * spatial(rows, lanes)
* repeat(batches of parts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spaces.algebra.integers import ceil_div
from spaces.algebra.mapping_emit import indented
from spaces.cuda.chains.lanes import ROWS
from spaces.cuda.chains.leaving import SHARERS, TOGETHER
from spaces.cuda.chains.merging import PartMerging
from spaces.cuda.hopper.tile import BLOCK
from spaces.cuda.target import WARP
from spaces.cuda.warpgroups import GROUP

_AHEAD = 16
"""Parts whose states are on their way to a lane at a time."""


@dataclass(frozen=True)
class RowMerging(PartMerging):
    """Of parts that warpgroups left of 64 rows each; a lane has one row, ``own``."""

    @property
    def lanes(self) -> int:
        """Lanes that share a row: no more than there are parts."""
        return min(WARP, 1 << (self.split - 1).bit_length())

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return GROUP // self.lanes

    @property
    def _state_words(self) -> int:
        """Of a thread that left them."""
        return ROWS * self.row_words // SHARERS

    def parts(self) -> list[str]:
        """Declare ``parts``, where the states of the own row are in the first part. Threads that
        left them had two rows each, eight apart."""
        size, words = self.own_bytes // 4, self.row_words
        half = BLOCK // 8 // ROWS  # warps of a slice
        row = f"(own / 8 % {ROWS} * {GROUP // SHARERS} + own / 16 % {half} * 8 + own % 8) * {words}"
        return [
            f"const float *const parts = (const float *)({self.crew.workspace} + "
            f"{self.zeroed_bytes})",
            f"    + (i64)({self.crew.tile}) * {self.split * size} + {row};",
        ]

    def merge(self, inside: str) -> list[str]:
        """Begin with nothing and merge the states of each ``lanes``-th part; then those of lanes,
        all of which take part."""
        masks = [1 << bit for bit in range(self.lanes.bit_length() - 1)]
        across = [line for mask in masks for line in self._across(mask)]
        return [
            "{",
            "  constexpr int r = 0;",
            *indented(self.chain.no_states()),
            f"  if ({inside}) {{",
            *indented(indented(self._batches())),
            "  }",
            *indented(across),
            "}",
        ]

    def _batches(self) -> list[str]:
        ahead = min(_AHEAD, ceil_div(self.split, self.lanes))
        names, size = range(0, self.row_words, TOGETHER), self.own_bytes // 4
        number = f"first + n * {self.lanes} + lane"
        loads = [
            self.room.loaded(TOGETHER, f"all{k}[n]", f"parts + (i64)part * {size} + {k}")
            for k in names
        ]
        merged = self._merged_states(self._load_states(self._left))
        loop = f"for (int n = 0; n < {ahead}; n++)"
        return [
            "#pragma unroll 1",
            f"for (int first = 0; first < {self.split}; first += {ahead * self.lanes}) {{",
            *(f"  float all{k}[{ahead}][{TOGETHER}];" for k in names),
            "  #pragma unroll",
            f"  {loop} {{",
            f"    const int part = tw_least({number}, {self.split - 1});",
            *indented(indented(loads)),
            "  }",
            "  #pragma unroll",
            f"  {loop} if ({number} < {self.split}) {{",
            *indented(indented(merged)),
            "  }",
            "}",
        ]

    def _loaded(self, name: str, count: int, held: str, at: str) -> list[str]:
        return [f"const float (&{name})[{count}] = {held}[n];"]

    def _across(self, mask: int) -> list[str]:
        """The states of the lane whose number differs in ``mask``."""
        values = [*(f"state{k}[r]" for k in range(self._states)), "seen[r] ? 1.0f : 0.0f"]
        others = [f"tw::shuffle_xor({value}, {mask})" for value in values]
        places = (f"tw::shuffle_xor(place{k}[r], {mask})" for k in self.chain.placed)
        others += [f"tw::bits_float((u32){place})" for place in places]
        lines: Sequence[str] = [f"const float other{k} = {o};" for k, o in enumerate(others)]
        return ["{", *indented(self._merged_states(lines)), "}"]
