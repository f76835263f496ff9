"""Rows in segments: blocks take tiles of rows and columns in turns, each of one segment.

Whatever the table of segments holds, a tile has rows and a matrix that there are. Rows of the tile
beyond its segment are multiplied like others, and not written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import index
from tilewright.spaces.cuda.blocks.segment_list import SegmentList
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.elements import Elements
from tilewright.spaces.cuda.low_bit_ring.sizes import RingSizes
from tilewright.spaces.derivation.products.view import Segments
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.low_bit.order import tile_bytes

END_ROW = "end_row"
"""The C variable that has the end of a tile's rows."""


@dataclass(frozen=True)
class SegmentWalk:
    """The walk of a block over tiles of ``segments``."""

    sizes: RingSizes
    segments: Segments
    elements: Elements

    def start(self) -> Lines:
        """Make the list of segments, and declare ``row_tiles``."""
        return self._list.make()

    def each(self, body: Lines) -> Lines:
        """Run lines for each tile of the block, with ``row0``, ``end_row``, ``across`` and ``q``,
        the codes of its matrix."""
        sizes, product = self.sizes, self.sizes.product
        columns = int(sizes.column_blocks)
        item, matrix = index("item"), sizes.deep * sizes.tiles
        size = matrix * tile_bytes(sizes.pairs.decoding.bits)
        codes = self.elements.names[product.codes.name]
        place = [
            f"const int tile_row = {(item // columns).text};",
            f"const int across = {(item % columns).text};",
            *self._list.find(),
            "const i64 row0 = first_row;",
            f"const u8 *const q = {codes} + (i64)segment * {size};",
        ]
        return CUDA.loop(
            "item",
            f"row_tiles * {columns}",
            [*place, *body],
            first="blockIdx.x",
            step=int(sizes.blocks),
        )

    @cached_property
    def _list(self) -> SegmentList:
        sizes = self.sizes
        return SegmentList(
            segments=self.segments,
            table=self.elements.names[self.segments.table.name],
            rows=int(sizes.rows),
            threads=int(sizes.threads),
            at=int(sizes.word_at),
        )
