"""The C of a matrix product: workers, cache blocks, packed panels, register tiles.

The loops are those of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication",
ACM TOMS 2008), written as task mappings that nest:

    spatial(batch workers) * repeat(batches)
                     * spatial(workers) * repeat(column blocks, depth blocks) * repeat(row blocks)
                     * repeat(row tiles, column tiles) * repeat(tile rows, vectors) * lanes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, extent, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import entry_function
from tilewright.spaces.cpu.blocked.blocking import Blocking, blocking
from tilewright.spaces.cpu.blocked.memory import Memory
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
class ContractionCode:
    """The kernel called ``entry`` that computes ``product`` under the decisions ``values``.

    If it ``is_open``, a call gives its number of rows, up to the product's: workers divide these,
    and there is a micro-kernel for each height that the last tile may have. If its
    ``batch_is_open``, a call gives the extent of the slowest axis of the batch.
    """

    product: Product
    values: Mapping[str, Value]
    lanes: int
    entry: str
    is_open: bool = False
    batch_is_open: bool = False

    @cached_property
    def blocks(self) -> Blocking:
        """The extents of chunks, blocks and tiles."""
        return blocking(self.product, self.lanes, self.values)

    @cached_property
    def memory(self) -> Memory:
        """The memory of a worker, and how operands are read."""
        return Memory(self.product, self.values, self.lanes, self.blocks)

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        lines = [
            *self._packing_functions(),
            *(line for tile in self._tiles for line in tile.source()),
            *self._tile_choice(),
            *self._finish(),
            *self._worker(),
            *self._entry(),
        ]
        return "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the scratch memory of all workers."""
        return self.blocks.workers * self.memory.floats * 4

    # -- functions -----------------------------------------------------------------------------

    def _packing_functions(self) -> list[str]:
        left, right = self.memory.left_block, self.memory.right_block
        return [
            *(left.function(f"{self.entry}_left") if left else ()),
            *(right.function(f"{self.entry}_right") if right else ()),
        ]

    @cached_property
    def _tiles(self) -> list[RegisterTile]:
        """The micro-kernels: for a full tile, and for the last rows and columns."""
        product, b, memory = self.product, self.blocks, self.memory
        left, right, ahead = memory.left_block, memory.right_block, memory.ahead

        def tile(rows: int, columns: int) -> RegisterTile:
            # Edges run rarely: what makes them faster is not worth the time that it takes to
            # compile.
            is_edge = (rows, columns) != (b.tile_rows, b.tile_columns)
            return RegisterTile(
                name=f"{self.entry}_{rows}x{columns}",
                rows=rows,
                columns=columns,
                lanes=self.lanes,
                unroll=1 if is_edge else int(self.values["unroll"]),
                prefetch=0,
                ahead=None if is_edge or not ahead else ahead.layout,
                ahead_dtype=ahead.dtype if ahead else product.right.dtype,
                left=left.panel if left else memory.left.layout,
                right=right.panel if right else memory.right.layout,
                sums=memory.sums or product.layout(product.output),
                left_dtype=memory.packed if left else memory.left.dtype,
                right_dtype=memory.packed if right else memory.right.dtype,
                right_is_padded=right is not None or product.right.packed,
                fetches_sums=not is_edge,
            )

        return [
            tile(rows, columns)
            for rows in tile_heights(product.rows, b.tile_rows, self.is_open)
            for columns in tile_extents(product.columns, b.tile_columns)
        ]

    def _tile_choice(self) -> list[str]:
        b, ahead = self.blocks, self.memory.ahead
        most = b.tile_rows + 1 if self.is_open else self.product.rows
        return tile_choice(
            f"{self.entry}_tile",
            [(tile, ", next" if tile.ahead else "") for tile in self._tiles],
            (most, self.product.columns),
            (b.tile_rows, b.tile_columns),
            f", const {ahead.c_type} *next" if ahead else "",
        )

    @property
    def _needs_finish(self) -> bool:
        return self.product.finished_arrays > 0 or self.memory.sums is not None

    @property
    def _finishes_blocks(self) -> bool:
        """True if the epilogue passes over rows of a block, and not of each tile: rows that lie a
        multiple of 4 KiB apart share few lines of L1, and several arrays of them do not fit."""
        return bool(self.product.matmul.further) and self.memory.sums is None

    def _finish(self) -> list[str]:
        if not self._needs_finish:
            return []
        b = self.blocks
        rows, columns = b.tile_rows, b.tile_columns
        if self._finishes_blocks:
            rows, columns = b.block_rows, b.block_columns
        sums = self.memory.sums or self.product.layout(self.product.output)
        own = self.memory.sums is not None
        about = (self.product, rows, columns // self.lanes, self.lanes, sums, own)
        return finish_function(f"{self.entry}_finish", *about)

    def _worker(self) -> list[str]:
        """Return the C function that computes one worker's chunk of the output."""
        b, product, memory = self.blocks, self.product, self.memory
        left_floats, right_floats, _ = memory.block_sizes
        packed = C_TYPES[memory.packed]
        worker = index("worker", b.workers)
        chunks = (ceil_div(product.rows, b.chunk_rows), ceil_div(product.columns, b.chunk_columns))
        batches = spatial(b.batch_workers, 1, 1) * repeat(b.chunk_batches, 1, 1)
        mapping = batches * spatial(1, b.row_workers, b.column_workers)
        return [
            f"static void {self.entry}_work(void *context, int worker) {{",
            "  const tw_call *call = context;",
            *indented([] if product.batch else pointers(product, memory.left, memory.right)),
            f"  float *own = (float *)call->workspace + {worker * memory.floats};",
            f"  {packed} *pl = (void *)own, *pr = pl + {left_floats};",
            f"  float *sums = own + {left_floats + right_floats};",
            *mapping.emit(
                worker,
                self._part,
                extents=(batches_given(product, self.batch_is_open), *chunks),
                prefix="n",
            ),
            "}",
        ]

    def _part(self, part: Sequence[Index]) -> list[str]:
        """Write a worker's chunk of one product of the batch."""
        number, *chunk = part
        if not self.product.batch:
            return self._chunk(chunk)
        places = pointers(self.product, self.memory.left, self.memory.right, number)
        return [*places, *self._chunk(chunk)]

    def _chunk(self, chunk: Sequence[Index]) -> list[str]:
        """Write a worker's part of the output: its blocks of columns and depth."""
        b, product = self.blocks, self.product
        blocks = repeat(b.column_blocks, b.depth_blocks) * spatial(
            b.block_columns, self.memory.block_steps
        )
        column = chunk[1] * b.chunk_columns
        extents = ("chunk_columns", self.memory.steps)
        return [
            *self._rows_of(chunk[0], f"column0 = {column}"),
            f"const long chunk_columns = tw_least({product.columns} - column0, {b.chunk_columns});",
            *blocks.emit(0, self._right_part, extents=extents, prefix="b"),
        ]

    def _rows_of(self, chunk: Index, column: str) -> list[str]:
        """Declare a worker's first row and column and its number of rows, a share of whole
        tiles."""
        b, product = self.blocks, self.product
        if not self.is_open:
            return [
                f"const long row0 = {chunk * b.chunk_rows}, {column};",
                f"const long chunk_rows = tw_least({product.rows} - row0, {b.chunk_rows});",
            ]
        rows, whole = extent("rows_given", 1, product.rows), b.row_workers * b.tile_rows
        share = (rows + whole - 1) // whole * b.tile_rows
        return [
            open_rows(product),
            f"const long share = {share};",
            f"const long row0 = {chunk} * share, {column};",
            "const long chunk_rows = tw_least(rows_given - row0, share);",
            "if (chunk_rows <= 0) return;",
        ]

    def _right_part(self, start: Sequence[Index]) -> list[str]:
        """Write a block of the right operand: it is packed once, then all blocks of rows meet
        it."""
        b, memory, product = self.blocks, self.memory, self.product
        lines = [
            f"const long j = {start[0]}, k = {start[1]};",
            f"const long columns = tw_least(chunk_columns - j, {b.block_columns});",
            f"const long depth = tw_least({memory.steps} - k, {memory.block_steps});",
        ]
        if memory.left.odd or memory.right.odd:
            lines.append(f"const long terms = tw_least({self.product.terms} - k * 2, depth * 2);")
        if memory.right_block:
            place = memory.right.layout.emit(DEPTH, COLUMN)
            extent = memory.right.extent
            lines.append(f"{self.entry}_right(r + {place}, pr, {extent}, columns);")
        if memory.ahead:
            kind = f"const {memory.ahead.c_type} *"
            remaining = f"{memory.steps} - k - depth"
            terms = 1 if product.right.packed else memory.terms_a_step
            place = memory.ahead.start(DEPTH * terms, remaining, COLUMN)
            lines.append(f"{kind}next = ({kind})r + {place};")
        blocks = repeat(b.row_blocks) * spatial(b.block_rows)
        return lines + blocks.emit(0, self._left_part, extents=("chunk_rows",), prefix="r")

    def _left_part(self, start: Sequence[Index]) -> list[str]:
        """Write a block of the left operand, which is packed if that is decided, and its tiles."""
        b, memory = self.blocks, self.memory
        lines = [
            f"const long i = {start[0]};",
            f"const long rows = tw_least(chunk_rows - i, {b.block_rows});",
        ]
        if memory.left_block:
            place = memory.left.layout.emit(ROW, DEPTH)
            lines.append(f"{self.entry}_left(l + {place}, pl, rows, {memory.left.extent});")
        counts = (b.block_rows // b.tile_rows, b.block_columns // b.tile_columns)
        order = (0, 1) if self.values["order"] == "rows_outer" else (1, 0)
        tiles = repeat(*counts, order=order) * spatial(b.tile_rows, b.tile_columns)
        lines += tiles.emit(0, self._tile, extents=("rows", "columns"), prefix="t")
        if self._finishes_blocks:
            place = self._output_at(ROW, COLUMN)
            lines.append(self._finish_call(place, ROW, COLUMN, "rows, columns"))
        return lines

    def _tile(self, start: Sequence[Index]) -> list[str]:
        """Write the call of a micro-kernel and, unless it passes over blocks, of the epilogue."""
        b, memory, (ti, tj) = self.blocks, self.memory, start
        a = f"l + {memory.left.layout.emit(ROW + ti, DEPTH)}"
        if memory.left_block:
            a = f"pl + {memory.left_block.layout.emit(ti, 0)}"
        r = f"r + {memory.right.layout.emit(DEPTH, COLUMN + tj)}"
        if memory.right_block:
            r = f"pr + {memory.right_block.layout.emit(0, tj)}"
        s = self._output_at(ROW + ti, COLUMN + tj)
        if memory.sums:
            whole = b.depth_blocks > 1
            place = memory.sums.emit(BLOCK_ROW + ti, BLOCK_COLUMN + tj)
            s = f"sums + {place}" if whole else "sums"
        sizes = f"rows - {ti}, columns - {tj}"
        ahead = f", next + {memory.ahead.share(BLOCK_ROW + ti, tj)}" if memory.ahead else ""
        lines = [f"{self.entry}_tile({a}, {r}, {s}, {sizes}, depth, k > 0{ahead});"]
        if self._needs_finish and not self._finishes_blocks:
            lines.append(self._finish_call(s, ROW + ti, COLUMN + tj, sizes))
        return lines

    def _output_at(self, row: Index, column: Index) -> str:
        """Return a pointer to an element of the first output."""
        return f"c + {self.product.layout(self.product.output).emit(row, column)}"

    def _finish_call(self, sums: str, row: Index, column: Index, sizes: str) -> str:
        """Return the call of the epilogue, after the last block of the depth."""
        product, matmul = self.product, self.product.matmul
        operands = [
            f"{pointer(product, o)} + {product.layout(o).emit(row, column)}"
            for o in (*matmul.outputs, *matmul.epilogue_inputs)
        ]
        arguments = ", ".join([sums, *operands, sizes])
        return f"if (k + depth == {self.memory.steps}) {self.entry}_finish({arguments});"

    def _entry(self) -> list[str]:
        return entry_function(self.entry, {f"{self.entry}_work": self.blocks.workers})


# Variables of the generated code: the place of a block in its worker's chunk, and in the product.
BLOCK_ROW, BLOCK_COLUMN, DEPTH = index("i"), index("j"), index("k")
ROW, COLUMN = index("row0") + BLOCK_ROW, index("column0") + BLOCK_COLUMN
