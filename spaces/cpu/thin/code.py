"""The C of a product with few rows: the right operand is read once, and none of it is packed.

The whole left operand is small enough to stay in the caches, so that there are no blocks of rows.
Workers share columns, depth, or both (split-K): each depth worker then has partial sums of its own,
which a second pass adds up after all have finished. As task mappings:

    spatial(batch workers) * repeat(batches)
                     * spatial(column workers, depth workers) * repeat(column blocks, depth blocks)
                     * repeat(column tiles, row tiles) * tile
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import entry_function
from tilewright.spaces.cpu.thin.blocking import ThinBlocking
from tilewright.spaces.cpu.thin.places import ThinPlaces
from tilewright.spaces.cpu.tiles.dot_tile import DotTile
from tilewright.spaces.cpu.tiles.epilogue import finish_function
from tilewright.spaces.cpu.tiles.kernel_parts import (
    batches_given,
    open_rows,
    pointer,
    pointers,
    tile_choice,
    tile_extents,
    tile_heights,
)
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.product import Product


@dataclass(frozen=True)
class ThinCode:
    """The kernel called ``entry`` that computes ``product`` under the decisions ``values``.

    ``dots`` selects the micro-kernel whose lanes run along the depth instead of along columns. The
    depth is walked in steps of ``terms`` terms each (see ``spaces.cpu.tiles.steps``).
    ``blocks_ahead`` prefetches later blocks of the depth instead of later tiles of columns. If the
    kernel ``is_open``, a call gives its number of rows, up to the product's, and there is a
    micro-kernel for each height that the last tile may have. If its ``batch_is_open``, a call gives
    the extent of the slowest axis of the batch.
    """

    product: Product
    values: Mapping[str, Value]
    blocks: ThinBlocking
    lanes: int
    entry: str
    dots: bool
    terms: int
    blocks_ahead: bool
    is_open: bool = False
    batch_is_open: bool = False

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        lines = [
            *self._at.packing(f"{self.entry}_left", self._rows),
            *(line for tile in self._tiles for line in tile.source()),
            *self._tile_choice(),
            *self._finish(),
            *self._worker(),
            *self._reducer(),
            *self._entry(),
        ]
        return "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the scratch memory of all workers."""
        return self._at.workspace_bytes

    @cached_property
    def _at(self) -> ThinPlaces:
        return ThinPlaces(self.product, self.values, self.blocks, self.lanes, self.terms)

    @property
    def _rows(self) -> int | str:
        """The number of rows of the product, or the C variable of those that a call gives."""
        return "rows_given" if self.is_open else self.product.rows

    # -- functions -----------------------------------------------------------------------------

    @cached_property
    def _tiles(self) -> list[RegisterTile | DotTile]:
        """The micro-kernels: for a full tile, and for the last rows and columns."""
        b, product = self.blocks, self.product
        return [
            self._micro_kernel(rows, columns)
            for rows in tile_heights(product.rows, b.tile_rows, self.is_open)
            for columns in tile_extents(product.columns, b.tile_columns)
        ]

    def _micro_kernel(self, rows: int, columns: int) -> RegisterTile | DotTile:
        left, right, packed = self._at.left, self._at.right, self._at.packed_left
        shared: dict[str, Any] = {
            "name": f"{self.entry}_{rows}x{columns}",
            "rows": rows,
            "columns": columns,
            "lanes": self.lanes,
            "unroll": self.values["unroll"],
            "left": packed or left.layout,
            "right": right.layout,
            "sums": self._at.sums or self.product.layout(self.product.output),
            "left_dtype": self._at.packed_dtype if packed else left.dtype,
            "right_dtype": right.dtype,
        }
        ahead = int(self.values["prefetch"])
        if self.dots:
            return DotTile(prefetch_columns=ahead * self.blocks.tile_columns, **shared)
        return RegisterTile(
            prefetch=ahead * self._at.block_steps * self.blocks_ahead,
            apart=right.apart,
            prefetch_columns=ahead * self.blocks.tile_columns * (not self.blocks_ahead),
            prefetches_far=True,
            right_is_padded=self.product.right.packed,
            fetches_sums=False,
            excess=self._at.excess,
            **shared,
        )

    def _tile_choice(self) -> list[str]:
        b, tiles = self.blocks, [(tile, "") for tile in self._tiles]
        full = (b.tile_rows, b.tile_columns)
        most = b.tile_rows + 1 if self.is_open else self.product.rows
        return tile_choice(f"{self.entry}_tile", tiles, (most, self.product.columns), full)

    @property
    def _needs_finish(self) -> bool:
        return self.product.finished_arrays > 0 or self._at.sums is not None

    def _finish(self) -> list[str]:
        if not self._needs_finish:
            return []
        sums = self._at.sums or self.product.layout(self.product.output)
        vectors = ceil_div(self.blocks.chunk_columns, self.lanes)
        own = self._at.sums is not None
        about = (self.product, self.product.rows, vectors, self.lanes, sums, own)
        return finish_function(f"{self.entry}_finish", *about)

    def _worker(self) -> list[str]:
        b, product = self.blocks, self.product
        worker = index("worker", self._at.workers)
        chunks = (ceil_div(product.columns, b.chunk_columns), b.depth_chunks)
        batches = spatial(b.batch_workers, 1, 1) * repeat(b.chunk_batches, 1, 1)
        mapping = batches * spatial(1, b.column_workers, b.depth_workers)
        sums = worker // (b.column_workers * b.depth_workers) * self._at.sums_floats
        sums += self._at.sums_start
        packed = C_TYPES[self._at.packed_dtype]
        return [
            f"static void {self.entry}_work(void *context, int worker) {{",
            "  const tw_call *call = context;",
            *self._rows_given,
            *([] if product.batch else indented(pointers(product, self._at.left, self._at.right))),
            f"  {packed} *pl = ({packed} *)call->workspace + {worker * self._at.left_floats};",
            f"  float *sums = (float *)call->workspace + {sums};",
            *mapping.emit(
                worker,
                self._part,
                extents=(batches_given(product, self.batch_is_open), *chunks),
                prefix="n",
            ),
            "}",
        ]

    @property
    def _rows_given(self) -> list[str]:
        return [f"  {open_rows(self.product)}"] if self.is_open else []

    def _part(self, part: Sequence[Index]) -> list[str]:
        """Write a worker's chunk of one product of the batch."""
        number, *chunk = part
        if not self.product.batch:
            return self._chunk(chunk)
        places = pointers(self.product, self._at.left, self._at.right, number)
        return [*places, *self._chunk(chunk)]

    def _chunk(self, chunk: Sequence[Index]) -> list[str]:
        """Write a worker's columns and depth: its rows are packed, then block follows block."""
        b, product, steps = self.blocks, self.product, self._at.chunk_steps
        lines = [
            f"const long column0 = {chunk[0] * b.chunk_columns};",
            f"const long depth0 = {chunk[1] * steps};",
            f"const long chunk_columns = tw_least({product.columns} - column0, {b.chunk_columns});",
            f"const long chunk_depth = tw_least({self._at.steps} - depth0, {steps});",
        ]
        if self._at.sums and b.depth_chunks > 1:
            lines.append(f"sums += {chunk[1] * self._at.sums.size};")
        if self._at.packed_left:
            place = self._at.left.layout.emit(0, DEPTH0)
            given = "rows_given, " if self.is_open else ""
            lines.append(f"{self.entry}_left(l + {place}, pl, {given}chunk_depth);")
        blocks = repeat(b.column_blocks) * spatial(b.block_columns)
        return lines + blocks.emit(0, self._column_block, extents=("chunk_columns",), prefix="b")

    def _column_block(self, start: Sequence[Index]) -> list[str]:
        """Write all of the depth for a block of columns, and the epilogue if the sums are complete
        then."""
        b = self.blocks
        depths = repeat(b.depth_blocks) * spatial(self._at.block_steps)
        lines = [
            f"const long j = {start[0]};",
            f"const long columns = tw_least(chunk_columns - j, {b.block_columns});",
            *depths.emit(0, self._depth_block, extents=("chunk_depth",), prefix="d"),
        ]
        if self._needs_finish and b.depth_chunks == 1:
            lines.append(self._finish_call(COLUMN, "columns"))
        return lines

    def _finish_call(self, column: Index, columns: str) -> str:
        """Return the call of the epilogue for ``columns`` columns from ``column`` on."""
        product, matmul = self.product, self.product.matmul
        arrays = [
            f"{pointer(product, o)} + {product.layout(o).emit(0, column)}"
            for o in (*matmul.outputs, *matmul.epilogue_inputs)
        ]
        sums = f"sums + {self._at.sums.emit(0, column)}" if self._at.sums else arrays[0]
        arguments = ", ".join([sums, *arrays, str(self._rows), columns])
        return f"{self.entry}_finish({arguments});"

    def _depth_block(self, start: Sequence[Index]) -> list[str]:
        """Write the tiles of one block; tiles of rows run fastest, while the right tile is in
        L1."""
        b, product = self.blocks, self.product
        counts = (ceil_div(product.rows, b.tile_rows), b.block_columns // b.tile_columns)
        tiles = repeat(*counts, order=(1, 0)) * spatial(b.tile_rows, b.tile_columns)
        return [
            f"const long k = {start[0]};",
            f"const long depth = tw_least(chunk_depth - k, {self._at.block_steps});",
            *tiles.emit(0, self._tile, extents=(self._rows, "columns"), prefix="t"),
        ]

    def _tile(self, start: Sequence[Index]) -> list[str]:
        product = self.product
        ti, tj = start
        a = f"l + {self._at.left.layout.emit(ti, DEPTH)}"
        if self._at.packed_left:
            a = f"pl + {self._at.packed_left.emit(ti, 'k')}"
        r = f"r + {self._at.right.layout.emit(DEPTH, COLUMN + tj)}"
        s = f"c + {product.layout(product.output).emit(ti, COLUMN + tj)}"
        if self._at.sums:
            s = f"sums + {self._at.sums.emit(ti, COLUMN + tj)}"
        sizes = f"{self._rows} - {ti}, columns - {tj}"
        return [f"{self.entry}_tile({a}, {r}, {s}, {sizes}, depth, k > 0);"]

    def _reducer(self) -> list[str]:
        """Return the C function of the second pass: each column worker adds up partial sums of its
        columns."""
        b, product = self.blocks, self.product
        if b.depth_chunks == 1:
            return []
        assert self._at.sums is not None
        workers = spatial(b.column_workers)
        return [
            f"static void {self.entry}_reduce(void *context, int worker) {{",
            "  const tw_call *call = context;",
            *self._rows_given,
            *indented(pointers(product, self._at.left, self._at.right)),
            "  (void)l, (void)r;",
            f"  float *sums = (float *)call->workspace + {self._at.sums_start};",
            *workers.emit(
                index("worker", b.column_workers),
                self._reduced_chunk,
                extents=(ceil_div(product.columns, b.chunk_columns),),
            ),
            "}",
        ]

    def _reduced_chunk(self, chunk: Sequence[Index]) -> list[str]:
        b, product = self.blocks, self.product
        vectors = ceil_div(b.chunk_columns, self.lanes)
        elements = repeat(product.rows, vectors) * spatial(1, self.lanes)
        return [
            f"const long column0 = {chunk[0] * b.chunk_columns};",
            f"const long columns = tw_least({product.columns} - column0, {b.chunk_columns});",
            *elements.emit(0, self._reduced_vector, extents=(self._rows, "columns")),
            self._finish_call(index("column0"), "columns"),
        ]

    def _reduced_vector(self, indices: Sequence[Index]) -> list[str]:
        assert self._at.sums is not None
        i, j = indices
        lines = [
            f"float *p = sums + {self._at.sums.emit(i, index('column0') + j)};",
            f"const long left = columns - {j};",
            "vf x = tw_load_most_float32(p, left);",
        ]
        for d in range(1, self.blocks.depth_chunks):
            lines.append(f"x += tw_load_most_float32(p + {d * self._at.sums.size}, left);")
        return [*lines, "tw_store_most_float32(p, x, left);"]

    def _entry(self) -> list[str]:
        b = self.blocks
        passes = {f"{self.entry}_work": self._at.workers}
        if b.depth_chunks > 1:
            passes[f"{self.entry}_reduce"] = b.column_workers
        return entry_function(self.entry, passes)


# Variables of the generated code: the place of a block in the product; the depth counts steps.
DEPTH0 = index("depth0")
COLUMN, DEPTH = index("column0") + index("j"), index("depth0") + index("k")
