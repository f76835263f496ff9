"""The C of a product of placed operands: padded copies, then workers, blocks, register tiles.

    spatial(batch workers) * repeat(products)
                     * spatial(workers) * repeat(column blocks, depth blocks)
                     * repeat(row tiles, column tiles) * repeat(tile rows, vectors) * lanes

The left operand is read in place, or in its padded copy: within a line its rows are equally far
apart, and loops over the depth around the steps of a tile reach the other terms. The right operand
is packed into panels or read in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Strided, strided
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import entry_function, worker_function
from tilewright.spaces.cpu.tiles.kernel_parts import Tile, tile_choice, tile_extents
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.cpu.tiles.turns import Turn
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.blocking import Blocking, blocking
from tilewright.spaces.cpu.windows.finish import finish_function, output_name, read_name
from tilewright.spaces.cpu.windows.memory import Memory
from tilewright.spaces.cpu.windows.nest import (
    LEFT,
    OUTPUT,
    PADDED,
    RIGHT,
    Key,
    Nest,
    Windows,
    offset,
    written,
)
from tilewright.spaces.cpu.windows.pointers import Pointers
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.array import Array

NUMBER, BLOCK_COLUMN, TURN = index("number"), index("j"), index("t")
COLUMN = index("column0") + BLOCK_COLUMN


@dataclass(frozen=True)
class WindowsCode:
    """The kernel called ``entry`` that computes ``view`` under the decisions ``values``.

    ``arrays`` are its buffers in the order of the call, ``lanes`` are the floats of a vector, and
    ``registers`` counts the vector registers.
    """

    view: Windows
    arrays: Sequence[Array]
    values: Mapping[str, Value]
    lanes: int
    registers: int
    entry: str

    @cached_property
    def blocks(self) -> Blocking:
        """The extents of chunks, blocks and tiles."""
        return blocking(self.view, self.lanes, self.values)

    @cached_property
    def nest(self) -> Nest:
        """The loops of the product, for a right operand that is packed or not."""
        return self.view.nest(bool(self.values["pack_right"]))

    @cached_property
    def _memory(self) -> Memory:
        return Memory(self.view, self.values, self.lanes, self.blocks, self.nest)

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        lines = [
            *self._copies(),
            *(self._memory.patches.function(f"{self.entry}_left") if self._memory.patches else ()),
            *(self._memory.packed.function(f"{self.entry}_right") if self._memory.packed else ()),
            *(line for tile in self._tiles for line in tile.source()),
            *self._tile_choice(),
            *self._finish(),
            *self._worker(),
            *entry_function(self.entry, self._passes),
        ]
        return "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the padded copies and of the scratch memory of all workers."""
        return self._memory.bytes

    # -- functions ---------------------------------------------------------------------------------

    def _copies(self) -> list[str]:
        names, lines = [array.name for array in self.arrays], list[str]()
        for number, copy in enumerate(self.view.copies):
            name, start = f"{self.entry}_copy{number}", self._memory.copy_starts[number]
            lines += copy.function(name, names, start, self.blocks.workers)
        return lines

    @property
    def _rows(self) -> str:
        """The number of rows of a line, in C."""
        return str(self.blocks.rows)

    @property
    def _passes(self) -> dict[str, int]:
        workers = self.blocks.workers
        copies = {f"{self.entry}_copy{n}": workers for n in range(len(self.view.copies))}
        return {**copies, f"{self.entry}_work": workers}

    @cached_property
    def _tiles(self) -> Sequence[Tile]:
        """The micro-kernels: for a full tile, and for the narrower last ones of rows and
        columns."""
        b = self.blocks
        return [
            self._tile(rows, columns)
            for rows in tile_extents(b.rows, b.tile_rows)
            for columns in tile_extents(b.columns, b.tile_columns)
        ]

    def _tile(self, rows: int, columns: int) -> RegisterTile:
        b, nest = self.blocks, self.nest
        *turns, last = nest.multiplied
        steps = b.block_turns * self._first_turns if not turns else last.extent
        left = strided((b.tile_rows, steps), (nest.row.strides[LEFT], last.strides[LEFT]))
        apart = b.tile_columns if self._memory.packed else last.strides[RIGHT]
        right = _in_place(steps, b.tile_columns, apart)
        is_edge = (rows, columns) != (b.tile_rows, b.tile_columns)
        return RegisterTile(
            name=f"{self.entry}_{rows}x{columns}",
            rows=rows,
            columns=columns,
            lanes=self.lanes,
            unroll=1 if is_edge else int(self.values["unroll"]),
            prefetch=0,
            left=left,
            right=right,
            sums=self._memory.sums,
            left_dtype=self.view.left.dtype,
            right_dtype="float32" if self._memory.packed else self.view.right.dtype,
            right_is_padded=self._memory.packed is not None,
            fetches_sums=not is_edge and not turns,
            turns=tuple(self._turns()) if turns else (),
        )

    def _turns(self) -> list[Turn]:
        """Return the loops around the steps of a tile, the outermost first."""
        *turns, last = self.nest.multiplied
        found, inner = list[Turn](), last.extent
        for loop in reversed(turns):
            right = inner * self.blocks.tile_columns if self._memory.packed else loop.strides[RIGHT]
            found.insert(0, Turn(loop.extent, loop.strides[LEFT], right))
            inner *= loop.extent
        return found

    @property
    def _first_turns(self) -> int:
        """Turns of the outermost loop of a tile in one turn of the depth's outermost loop."""
        return self.nest.multiplied[0].extent // self.nest.depth[0].extent

    def _tile_choice(self) -> list[str]:
        b = self.blocks
        tiles = [(tile, "") for tile in self._tiles]
        whole, full = (b.rows, b.columns), (b.tile_rows, b.tile_columns)
        return tile_choice(f"{self.entry}_tile", tiles, whole, full)

    @property
    def _needs_finish(self) -> bool:
        product = self.view.product
        return product.fused or self._memory.own_sums or bool(product.further)

    def _finish(self) -> list[str]:
        if not self._needs_finish:
            return []
        b = self.blocks
        tile = (b.tile_rows, b.tile_columns // self.lanes)
        name = f"{self.entry}_finish"
        memory = self._memory
        about = (self.view.product, self.nest, tile, self.lanes, memory.sums, memory.own_sums)
        return finish_function(name, *about)

    # -- the worker --------------------------------------------------------------------------------

    def _worker(self) -> list[str]:
        """Return the C function that computes one worker's part of the output."""
        b = self.blocks
        worker = index("worker", b.workers)
        apart = spatial(b.batch_workers, 1, 1) * repeat(b.chunk_products, 1, 1)
        mapping = apart * spatial(1, b.row_workers, b.column_workers)
        column_chunks = -(-b.columns // b.chunk_columns)
        row_chunks = -(-b.row_tiles // b.chunk_tiles)
        extents = (b.products, row_chunks, column_chunks)
        return self._work(mapping.emit(worker, self._chunk, extents=extents, prefix="n"))

    def _work(self, lines: Sequence[str]) -> list[str]:
        """Return a worker's function around ``lines``, with pointers to its scratch memory."""
        worker = index("worker", self.blocks.workers)
        own = [
            f"char *own = (char *)call->workspace + {self._memory.worker_start};",
            f"float *pr = (float *)(own + {worker * self._memory.worker_bytes});",
            f"float *sums = pr + {self._memory.packed_floats};",
            *self._patch(),
        ]
        return worker_function(f"{self.entry}_work", [*own, *lines])

    def _patch(self) -> list[str]:
        """Declare the C variables of a worker's patch."""
        if self._memory.patches is None:
            return []
        c_type = C_TYPES[self.view.left.dtype]
        return [f"{c_type} *patch = ({c_type} *)(sums + {self._memory.sums_floats});", "long held;"]

    def _chunk(self, part: Sequence[Index]) -> list[str]:
        """Write a worker's part of one product: the extents of its chunk, and its blocks."""
        b = self.blocks
        number, row, column = part
        return [
            *self._pointers(number),
            f"const long tile0 = {row * b.chunk_tiles}, column0 = {column * b.chunk_columns};",
            f"const long chunk_tiles = tw_least({b.row_tiles} - tile0, {b.chunk_tiles});",
            f"const long chunk_columns = tw_least({b.columns} - column0, {b.chunk_columns});",
            *self._blocks(),
        ]

    def _blocks(self) -> list[str]:
        """Write the loops over a chunk's blocks of columns and of the depth."""
        b = self.blocks
        blocks = repeat(b.column_blocks, b.depth_blocks) * spatial(b.block_columns, b.block_turns)
        return blocks.emit(0, self._block, extents=("chunk_columns", b.turns), prefix="b")

    def _pointers(self, number: Index) -> list[str]:
        """Declare the C pointers to the elements of all arrays for one product."""
        found = Pointers(
            self.view, self.nest, self.arrays, self._memory.copy_starts, self._first_row
        )
        return found.lines(number)

    @property
    def _first_row(self) -> Index:
        """The row of a product at which the count of tiles begins."""
        return Index()

    def _block(self, start: Sequence[Index]) -> list[str]:
        """Write a block: its right operand is packed if that is decided, then all its tiles
        follow."""
        b, nest = self.blocks, self.nest
        lines = [
            f"const long j = {start[0]}, t = {start[1]};",
            f"const long columns = tw_least(chunk_columns - j, {b.block_columns});",
            f"const long turns = tw_least({b.turns} - t, {b.block_turns});",
            *(["held = -1;"] if self._memory.patches else []),
        ]
        if self._memory.packed:
            source = f"r + {(TURN * nest.depth[0].strides[RIGHT]).text}"
            lines.append(f"{self.entry}_right({source}, pr, {COLUMN.text}, columns, turns);")
        order = (0, 1) if self.values["order"] == "rows_outer" else (1, 0)
        counts = (b.chunk_tiles, b.block_columns // b.tile_columns)
        tiles = repeat(*counts, order=order) * spatial(1, b.tile_columns)
        extents = ("chunk_tiles", "columns")
        return lines + tiles.emit(0, self._call, extents=extents, prefix="m")

    def _call(self, start: Sequence[Index]) -> list[str]:
        """Write the call of a micro-kernel and, after the last block of the depth, of what is
        fused."""
        b, nest = self.blocks, self.nest
        tile, tj = index("tile", b.row_tiles), start[1]
        line, i = tile // b.line_tiles, tile % b.line_tiles * b.tile_rows
        column = COLUMN + tj

        def at(key: Key) -> Index:
            moved = offset(nest.lines, line, key) + i * nest.row.strides[key]
            return moved + column * nest.column.strides[key]

        right = f"r + {(at(RIGHT) + TURN * nest.depth[0].strides[RIGHT]).text}"
        if self._memory.packed:
            right = f"pr + {self._memory.packed.layout.emit(0, tj)}"
        output = f"c + {at(OUTPUT).text}"
        sums = "sums" if self._memory.own_sums else output
        depth = f"turns * {self._first_turns}" if self._first_turns > 1 else "turns"
        rows = f"tw_least({self._rows} - {i}, {b.tile_rows})"
        left, sizes = (
            f"l + {(at(LEFT) + TURN * nest.depth[0].strides[LEFT]).text}",
            f"{rows}, columns - {tj}",
        )
        if self._memory.patches:
            place = index("padded") + at(PADDED) + TURN * nest.depth[0].strides[PADDED]
            left = f"{self.entry}_left(l, patch, &held, {place.text}, {rows}, {depth})"
        lines = [
            f"const long tile = tile0 + {start[0]};",
            f"{self.entry}_tile({left}, {right}, {sums}, {sizes}, {depth}, t > 0);",
        ]
        if self._needs_finish:
            product = self.view.product
            outputs = [
                f"{output_name(n)} + {at(key).text}" for n, key in enumerate(written(product))
            ]
            reads = [f"{read_name(n)} + {at(read).text}" for n, read in enumerate(product.places)]
            arguments = ", ".join([sums, *outputs, *reads, sizes])
            lines.append(f"if (t + turns == {b.turns}) {self.entry}_finish({arguments});")
        return lines


def _in_place(steps: int, columns: int, apart: int) -> Strided:
    """Return the layout (step, column) of a right operand whose steps are ``apart`` elements apart,
    which may be negative."""
    if apart >= 0:
        return strided((steps, columns), (apart, 1))
    return Strided((steps, columns), (steps - 1) * -apart + columns, (apart, 1))
