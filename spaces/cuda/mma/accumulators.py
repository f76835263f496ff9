"""The accumulators of ``mma.sync`` in registers, and their store to the output.

A warp's accumulator of 16 rows and 8 columns lies on its lanes as the mapping ``repeat(2, 1) *
spatial(8, 4) * repeat(1, 2)`` says: each thread holds two pairs of neighbours. Stored directly,
pairs of a row come from four lanes; through shared memory, lanes store whole vectors side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Layout, strided
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.blocks.copies.tile_copy import position_type
from tilewright.spaces.cuda.blocks.finish import Finish
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.target import WARP

STORES = ("direct", "shared")
"""Ways of sums to the output: directly as accumulators hold them, or through shared memory."""

VECTOR = 8
"""The most elements of a row that a thread finishes at a time."""

_WIDTH = 8
_BYTES = 4
_PADDING = 8  # floats between rows, so that rows written at once have no bank conflicts


@dataclass(frozen=True)
class Accumulators:
    """Accumulators ``sums[i][4]`` of C type ``kind`` in each thread of ``warps`` (rows, columns).

    Each warp has ``fragments`` of 16 rows and of 16 columns; two accumulators lie side by side in
    one.
    """

    product: Tiled
    warps: tuple[int, int]
    fragments: tuple[int, int]
    kind: str
    through_shared: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Accumulators of a warp along rows and columns."""
        return self.fragments[0], self.fragments[1] * FRAGMENT // _WIDTH

    @property
    def count(self) -> int:
        """Accumulators of a warp."""
        return self.shape[0] * self.shape[1]

    def finish(self) -> list[str]:
        """Print how all sums are finished and stored."""
        if not self.through_shared:
            return self._finish_pairs()
        return [
            "tw::sync_block();",
            f"const u32 slab = shared + (int)threadIdx.x / {WARP} * {self._slab_bytes};",
            *unrolled(repeat(self.fragments[0]), 0, self._finish_slab, "s"),
        ]

    def _finish_pairs(self) -> list[str]:
        def body(indices: tuple[Index, ...]) -> list[str]:
            row, pair = indices
            i = row // FRAGMENT % self.shape[0]
            j = pair // (_WIDTH // 2) % self.shape[1]
            place = index("row0") + row, index("column0") + pair * 2
            return self._output.store(*place, self._pair(i, j, row))

        mapping = spatial(*self.warps) * repeat(*self.shape) * repeat(2, 1) * spatial(8, 4)
        return unrolled(mapping, THREAD, body, "f", None, position_type(self.product))

    def _finish_slab(self, indices: tuple[Index, ...]) -> list[str]:
        """Print how sixteen rows of each warp go to its slab, and out again as vectors of a row."""
        (i,) = indices
        return ["tw::sync_warp();", *self._fill(i), "tw::sync_warp();", *self._drain(i)]

    def _fill(self, i: Index) -> list[str]:
        def body(indices: tuple[Index, ...]) -> list[str]:
            row, pair = indices
            values = ", ".join(self._pair(i, pair // (_WIDTH // 2), row))
            place = self._slab.index([row, pair * 2]) * _BYTES
            return [
                f"const {self.kind} two[2] = {{{values}}};",
                f"tw::store_shared<2>(slab + {place}, two);",
            ]

        lanes = repeat(1, 1, self.shape[1]) * repeat(1, 2, 1) * spatial(1, 8, 4)
        warps = spatial(self.warps[0] * self.warps[1], 1, 1)
        return unrolled((warps * lanes).project((1, 2)), THREAD, body, "w")

    def _drain(self, i: Index) -> list[str]:
        width = self._output.vector(VECTOR)
        wide = self._columns // width
        lanes = min(wide, WARP)

        def body(indices: tuple[Index, ...]) -> list[str]:
            tall, vector = indices
            place = self._slab.index([tall % FRAGMENT, vector % wide * width]) * _BYTES
            row = tall // FRAGMENT * (self.fragments[0] * FRAGMENT) + i * FRAGMENT + tall % FRAGMENT
            totals = [f"row[{e}]" for e in range(width)]
            return [
                f"{self.kind} row[{width}];",
                f"tw::load_shared<{width}>(row, slab + {place});",
                *self._output.store(index("row0") + row, index("column0") + vector * width, totals),
            ]

        tasks = repeat(FRAGMENT * lanes // WARP, wide // lanes) * spatial(WARP // lanes, lanes)
        mapping = spatial(*self.warps) * tasks
        return unrolled(mapping, THREAD, body, "r", None, position_type(self.product))

    def _pair(self, i: Index, j: Index, row: Index) -> list[str]:
        """Return the two sums of a thread in accumulator (i, j) at one of its rows, in C."""
        total = f"sums[{(i * self.shape[1] + j).text}]"
        first = row // _WIDTH % 2 * 2
        return [f"{total}[{first.text}]", f"{total}[{(first + 1).text}]"]

    @property
    def _output(self) -> Finish:
        rows, columns = (w * n * FRAGMENT for w, n in zip(self.warps, self.fragments, strict=True))
        return Finish(self.product, rows, columns)

    @property
    def _columns(self) -> int:
        return self.fragments[1] * FRAGMENT

    @property
    def _slab(self) -> Layout:
        """The layout of sixteen rows of a warp's tile, in elements."""
        return strided((FRAGMENT, self._columns), (self._columns + _PADDING, 1))

    @property
    def _slab_bytes(self) -> int:
        return int(slab_bytes(self._columns))


def slab_bytes(columns: Any) -> Any:
    """Return the bytes of shared memory for sixteen rows of ``columns`` sums."""
    return FRAGMENT * (columns + _PADDING) * _BYTES
