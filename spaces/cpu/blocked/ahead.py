"""Prefetches of the right operand into L2, issued while earlier tiles multiply.

The right operand is first read when a block of it is packed, or when a tile reads a panel of it in
place. Its lines come from far away, and the hardware does not prefetch across rows that are a page
apart; with few rows to multiply, waiting for them takes a fifth of the time. So each tile
prefetches its share of the next block or panel, one line a step: many at once would only wait for
each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Panels, Strided, strided
from tilewright.spaces.cpu.blocked.blocking import Blocking
from tilewright.spaces.cpu.tiles.steps import PAIR, stream
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.workloads.packing import PANEL, TERMS
from tilewright.spaces.workloads.product import Product


@dataclass(frozen=True)
class Ahead:
    """The part of the right operand that comes next: a block, if blocks are ``packed``, or a
    panel."""

    product: Product
    blocks: Blocking
    packed: bool

    @property
    def dtype(self) -> str:
        """The type of its elements; those of packed weights are words."""
        return PAIR if self._terms > 1 else self.product.right.dtype

    @property
    def c_type(self) -> str:
        """The type of an element in C."""
        return C_TYPES[self.dtype]

    @property
    def layout(self) -> Strided:
        """The layout (run, element) of a tile's share; a run is contiguous."""
        if panels := self._panels:
            runs = self.blocks.tile_columns // panels.width
            return strided((runs, self._share_of_panel), (panels.panel, 1))
        apart = max(self._place.strides)
        return strided((ceil_div(self._runs, self._shares), self._length), (apart, 1))

    def start(self, term: Index, terms_left: str, column: Index) -> str:
        """Return the C offset at which the next block or panel begins, seen from one at (term,
        column) that has ``terms_left`` terms of depth after it."""
        b = self.blocks
        place = self._panels or self._place
        if not self.packed:
            return f"{place.emit(term, column + b.tile_columns)}"
        deeper = place.emit(term + b.block_depth, column)
        return f"({terms_left} > 0 ? {deeper} : {place.emit(0, column + b.block_columns)})"

    def share(self, row: Index, column: Index) -> str:
        """Return the C offset from there to the share of a tile, which is at a row of the worker's
        chunk and a column of the block."""
        tile = f"{row} / {self.blocks.tile_rows}"
        if panels := self._panels:
            return f"{panels.emit(0, column)} + {tile} * {self._share_of_panel}"
        run = f"{tile} * {self._runs} / {self._shares}"
        return f"{self._place.emit(0, column)} + {run} * {self.layout.strides[0]}"

    @property
    def _panels(self) -> Panels | None:
        """The layout of packed weights; None if they are not packed."""
        found = stream(self.product, self.product.right, self._terms).layout
        return found if isinstance(found, Panels) else None

    @property
    def _terms(self) -> int:
        """The number of terms of a word of packed weights."""
        right = self.product.right
        return TERMS[right.dtype] if right.packed else 1

    @property
    def _share_of_panel(self) -> int:
        """The number of words of each panel that a tile prefetches."""
        steps = self.blocks.block_depth // self._terms
        return int(ceil_div(steps, self._shares) * PANEL)

    @property
    def _place(self) -> Strided:
        return self.product.layout(self.product.right)

    @property
    def _runs(self) -> int:
        b = self.blocks
        return int(b.tile_columns if self.product.right_runs_deep else b.block_depth)

    @property
    def _length(self) -> int:
        b = self.blocks
        return int(b.block_depth if self.product.right_runs_deep else b.tile_columns)

    @property
    def _shares(self) -> int:
        return int(self.blocks.chunk_rows // self.blocks.tile_rows)
