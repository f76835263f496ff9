"""Products with packed codes by ``wgmma``: codes are decoded in registers, activations stay in
shared memory.

A warp decodes a tile while its warpgroup multiplies the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.sizes import ACTIVATION, COLUMNS
from tilewright.spaces.cuda.low_bit_ring.code import STEPS, RingCode
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.low_bit.order import DEPTH

LINE = DEPTH * ACTIVATION
"""Bytes of a row of activations of a tile's depth, which are swizzled."""


@dataclass(frozen=True)
class WarpgroupCode(RingCode):
    """The kernel whose warpgroups multiply: each of their warps has tiles of its own."""

    @property
    def _declared_sums(self) -> str:
        return f"float s[{self._tiles}][{self._count * 4}] = {{}};"

    def _sum(self, number: int) -> str:
        return f"s[i][r * 4 + {number}]"

    def _multiply(self) -> Lines:
        """Multiply a stage, a tile after the other, with fragments in two places in turns."""
        deep = self._number("stage_depth")
        tiles = [(tile, place) for tile in range(self._tiles) for place in range(deep)]
        lines = [f"u32 a[2][{STEPS}][4];"]
        for turn, (tile, place) in enumerate(tiles):
            lines += self._tile(tile, place, f"a[{turn % 2}]")
        settled = CUDA.loop("i", self._tiles, ["tw::settle(s[i]);"], unroll=True)
        return CUDA.block(*lines, "tw::wgmma_wait<0>();", *settled)

    def _tile(self, tile: int, place: int, fragments: str) -> Lines:
        """Decode a tile, and begin to multiply it; wait for the one before."""
        sizes, kind = self.sizes, C_TYPES[self.sizes.pairs.kind]
        rows = int(sizes.rows)
        lines = [
            f"const int j = {tile}, i = 0;",
            f"u32 w[1][{sizes.pairs.decoding.bits}];",
            *self._words(place),
        ]
        for step in range(STEPS):
            part = (place * STEPS + step) * FRAGMENT // int(sizes.part_depth)
            lines += CUDA.block(*self._left(step, part, f"{fragments}[{step}]"))
        lines.append("tw::wgmma_fence();")
        for step in range(STEPS):
            at = place * rows * LINE + step * FRAGMENT * ACTIVATION
            right = f"tw::wgmma_descriptor<{LINE}>(x + {at}, 16, {COLUMNS * LINE})"
            lines.append(
                f"tw::wgmma_m64n{rows}k16_f32_{kind}_{kind}_rs"
                f"(s[{tile}], {fragments}[{step}], {right}, 1);"
            )
        return CUDA.block(*lines, "tw::wgmma_commit();", "tw::wgmma_wait<1>();")
