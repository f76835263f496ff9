"""The CUDA C++ of segments: where products are few, several blocks share the positions of each.

A first launch computes what the terms of each segment but the last come to, and leaves these states
in the workspace as registers have them. Blocks of the second one join the states of all segments
before theirs, in order, and walk along their own: results are the same in every run. A state has
the largest exponent of its terms, and its segment has grown by so much:

    M' = max(M + G, M of the segment)     state = exp((M - M') + G) * state + exp(M of it - M') * it
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.chunked.block import WIDE, Block
from tilewright.spaces.cuda.chunked.numbers import Numbers
from tilewright.spaces.cuda.chunked.sizes import EXPONENTS
from tilewright.spaces.kernels.text import CUDA

GONE = "gone"
"""C variable of how far the exponents of a segment have grown."""


@dataclass(frozen=True)
class Segments:
    """The segments of ``block``, whose exponents are those of ``numbers``."""

    block: Block
    numbers: Numbers

    @property
    def count(self) -> int:
        """Segments of all positions."""
        return self.block.segments

    @property
    def _blocks(self) -> int:
        return int(self.block.sizes.blocks(self.block.values))

    @property
    def _words(self) -> int:
        """Words of the state of a block."""
        return int(self.block.sizes.state_words(self.block.values))

    def declared(self) -> list[str]:
        """Print the declarations of a block's number in its segment, and of its chunks."""
        own, chunks = self.block.sizes.segment_chunks(self.block.values), self.block.chunks
        if self.count == 1:
            return ["const int own = (int)blockIdx.x;", f"const int first = 0, last = {chunks};"]
        return [
            f"const int own = (int)blockIdx.x % {self._blocks};",
            f"const int segment = (int)blockIdx.x / {self._blocks};",
            f"const int first = segment * {own}, last = tw_least(first + {own}, {chunks});",
        ]

    def left(self) -> list[str]:
        """Print how a block leaves the state of its segment."""
        lines = [self._state("segment"), *self._each(["tw::store_global<4>({}, state[f][k]);"])]
        if not self.numbers.has_powers:
            return lines
        stores = [
            "tw::store_global(exponents, greatest);",
            f"tw::store_global(exponents + 1, {GONE});",
        ]
        return [*lines, *CUDA.when("threadIdx.x == 0", [self._exponents("segment"), *stores])]

    def joined(self) -> list[str]:
        """Print how a block joins the states of the segments before its own."""
        if self.count == 1:
            return []
        load = ["float part[4];", "tw::load_global<4>(part, {});"]
        total, powers = "state[f][k][e] += part[e];", list[str]()
        if self.numbers.has_powers:
            total = "state[f][k][e] = tw::fused(part[e], added, state[f][k][e] * kept);"
            powers = [
                self._exponents("before"),
                "const float other = tw::load_global(exponents);",
                "const float grown = tw::load_global(exponents + 1);",
                "const float next = tw_most(greatest + grown, other);",
                f"const float kept = {self.numbers.power('(greatest - next) + grown')};",
                f"const float added = {self.numbers.power('other - next')};",
                "greatest = next;",
            ]
        body = [*load, *CUDA.loop("e", 4, total, unroll=True)]
        lines = [self._state("before"), *powers, *self._each(body)]
        return CUDA.loop("before", "segment", lines, unroll=1)

    def _state(self, segment: str) -> str:
        """Return the declaration of where the state of a block of a segment is."""
        place = f"((i64){segment} * {self._blocks} + own) * {self._words}"
        return f"float *const left = (float *)workspace + {place} + (int)threadIdx.x * 4;"

    def _exponents(self, segment: str) -> str:
        """Return the declaration of where its exponents are, which are behind all states."""
        first = (self.count - 1) * self._blocks * self._words
        place = f"({segment} * {self._blocks} + own) * {EXPONENTS}"
        return f"float *const exponents = (float *)workspace + (i64){first} + {place};"

    def _each(self, body: list[str]) -> list[str]:
        """Return loops of the lines over the registers of a state, four at a time, where ``{}`` is
        their place."""
        block, count = self.block, self.block.sizes.depth // WIDE
        place = f"left + (f * {count} + k) * {block.warps * 32 * 4}"
        lines = [line.replace("{}", place) for line in body]
        return CUDA.loop(
            "f", block.fragments, CUDA.loop("k", count, lines, unroll=True), unroll=True
        )
