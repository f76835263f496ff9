"""The C of products whose rows come in segments, each with the matrix that a table gives it.

A worker walks the table over its share of all rows: a segment ends where the entry changes. Empty
segments never come up. Within a segment all is as in one product of a batch, but its number of rows
is known only at run time, so that there is a micro-kernel for each number of rows up to a tile's.
Entries are clamped to the matrices there are: no table makes the kernel access memory outside of
the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import strided
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.tiles.dot_panel import DotPanel, columns_at_once
from tilewright.spaces.cpu.tiles.dot_tile import DotTile
from tilewright.spaces.cpu.tiles.kernel_parts import Tile, tile_extents
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.code import WindowsCode
from tilewright.spaces.cpu.windows.nest import LEFT, RIGHT
from tilewright.spaces.derivation.products.view import Segments


@dataclass(frozen=True)
class SegmentedCode(WindowsCode):
    """The kernel of a view whose rows come in segments."""

    @property
    def _segments(self) -> Segments:
        assert self.view.product.segments is not None
        return self.view.product.segments

    @property
    def _rows(self) -> str:
        return "rows"

    @cached_property
    def _tiles(self) -> Sequence[Tile]:
        b = self.blocks
        make = self._dots if self._has_dots else self._tile
        return [
            make(rows, columns)
            for rows in range(1, min(b.tile_rows, b.rows) + 1)
            for columns in tile_extents(b.columns, b.tile_columns)
        ]

    @property
    def _has_dots(self) -> bool:
        return not (self.values["pack_right"] or self.view.has_vectors)

    def _dots(self, rows: int, columns: int) -> DotPanel:
        """Return the micro-kernel of a right operand in place whose lanes run along the depth."""
        b, nest, chains = self.blocks, self.nest, int(self.values["unroll"])
        steps = b.block_turns * self._first_turns
        name = f"{self.entry}_{rows}x{columns}"
        tile = DotTile(
            name=name,
            rows=rows,
            columns=int(columns_at_once(rows, chains, self.registers)),
            lanes=self.lanes,
            unroll=chains,
            prefetch_columns=0,
            left=strided((b.tile_rows, steps), (nest.row.strides[LEFT], 1)),
            right=strided((steps, b.tile_columns), (1, nest.column.strides[RIGHT])),
            sums=self._memory.sums,
            left_dtype=self.view.left.dtype,
            right_dtype=self.view.right.dtype,
        )
        return DotPanel(name, columns, tile)

    def _tile_choice(self) -> list[str]:
        """Return the C function that calls the micro-kernel for the rows and columns of a tile."""
        a, b = C_TYPES[self._tiles[0].left_dtype], C_TYPES[self._tiles[0].right_dtype]
        full = self.blocks.tile_columns
        lines = []
        for tile in sorted(self._tiles, key=lambda tile: tile.columns):
            narrow = tile.columns < min(full, self.blocks.columns)
            test = f"rows == {tile.rows}" + (f" && columns < {full}" if narrow else "")
            lines.append(f"if ({test}) return {tile.name}(a, b, s, depth, accumulate);")
        return [
            f"static inline void {self.entry}_tile(",
            f"    const {a} *a, const {b} *b, float *s,",
            "    long rows, long columns, long depth, int accumulate) {",
            *indented(lines),
            "}",
        ]

    def _worker(self) -> list[str]:
        b, worker = self.blocks, index("worker", self.blocks.workers)
        shares = spatial(b.row_workers, b.column_workers)
        extents = (ceil_div(b.rows, self._share_rows), ceil_div(b.columns, b.chunk_columns))
        table = [array.name for array in self.arrays].index(self._segments.table.name)
        return [
            *self._segment_end(),
            *self._work(
                [
                    f"const int *table = call->buffers[{table}];",
                    *shares.emit(worker, self._share, extents=extents, prefix="n"),
                ]
            ),
        ]

    @property
    def _share_rows(self) -> int:
        """The number of rows that a worker walks over."""
        return int(ceil_div(self.blocks.rows, self.blocks.row_workers))

    def _segment_end(self) -> list[str]:
        """Return the C function ``name(table, first, end)``: it finds the end of the segment that
        begins at row ``first``."""
        return [
            f"static long {self.entry}_segment(const int *table, long first, long end) {{",
            "  long last = first + 1;",
            "  while (last < end && table[last] == table[first]) last++;",
            "  return last;",
            "}",
        ]

    def _share(self, part: Sequence[Index]) -> list[str]:
        """Write the loop over the segments of a worker's rows."""
        b, most = self.blocks, self._segments.count - 1
        row, column = part
        apart = self.nest.product_count // self._segments.count
        segment = index("segment", self._segments.count)

        def product(at: Sequence[Index]) -> list[str]:
            return [*self._pointers(segment * apart + at[0]), *self._blocks()]

        return [
            f"const long end = tw_least({b.rows}, {(row + 1) * self._share_rows});",
            f"const long column0 = {column * b.chunk_columns}, tile0 = 0;",
            f"const long chunk_columns = tw_least({b.columns} - column0, {b.chunk_columns});",
            f"for (long first = {row * self._share_rows}, last; first < end; first = last) {{",
            f"  last = {self.entry}_segment(table, first, end);",
            "  const long entry = table[first] < 0 ? 0 : table[first];",
            f"  const long segment = tw_least(entry, {most}), rows = last - first;",
            f"  const long chunk_tiles = (rows + {b.tile_rows - 1}) / {b.tile_rows};",
            *indented(repeat(apart).emit(0, product, prefix="a")),
            "}",
        ]

    @property
    def _first_row(self) -> Index:
        return index("first", self.blocks.rows)
