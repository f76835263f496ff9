"""The C of sums over short windows: copies, then workers, blocks, register tiles.

    spatial(workers) * repeat(column blocks, square blocks)
                     * repeat(panels, elements) * repeat(row tiles) * lanes

The filters of a block of columns are transformed, then, block by block, squares of the image. Each
element of a transformed square is one matrix product: squares by channels times channels by
columns. Products are transformed to outputs as soon as a panel of columns has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.layout import strided
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import PAGE, entry_function, worker_function
from tilewright.spaces.cpu.tiles.kernel_parts import tile_choice, tile_extents
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.finish import read_name
from tilewright.spaces.cpu.windows.nest import OUTPUT, RIGHT, Key
from tilewright.spaces.cpu.winograd.blocking import Blocking, blocking
from tilewright.spaces.cpu.winograd.stages import Stages
from tilewright.spaces.cpu.winograd.view import Squares, SquareWindows
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class WinogradCode:
    """The kernel called ``entry`` that computes ``view`` under the decisions ``values``; ``arrays``
    are its buffers in order."""

    view: SquareWindows
    arrays: Sequence[Array]
    values: Mapping[str, Value]
    lanes: int
    entry: str

    @cached_property
    def blocks(self) -> Blocking:
        """The extents of chunks, blocks and tiles."""
        return blocking(self.view, self.lanes, self.values)

    @cached_property
    def squares(self) -> Squares:
        """The rows, cut into squares."""
        return self.view.squares(int(self.values["output_tile"]))

    @cached_property
    def stages(self) -> Stages:
        """The functions that transform images, filters and products."""
        return Stages(self.squares, self.blocks, self.lanes, self.entry)

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        lines = [
            *self._copy(),
            *self.stages.image_function(),
            *self.stages.filter_function(),
            *(line for tile in self._tiles for line in tile.source()),
            *self._tile_choice(),
            *self.stages.output_function(),
            *self._worker(),
            *entry_function(self.entry, self._passes),
        ]
        return "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the padded copy and of the scratch memory of all workers."""
        return self._copy_bytes + self.blocks.workers * self._worker_bytes

    @property
    def _copy_bytes(self) -> int:
        return round_up(self.squares.copy.bytes, PAGE) if self.squares.copy else 0

    @property
    def _scratch(self) -> tuple[int, int, int]:
        """Floats of a worker's transformed filters, squares and products."""
        panels = self.blocks.block_columns // self.blocks.tile_columns
        sizes = panels * self.stages.panel.size, self.stages.image.size, self.stages.products.size
        filters, squares, products = (round_up(size, PAGE // 4) for size in sizes)
        return filters, squares, products

    @property
    def _worker_bytes(self) -> int:
        return 4 * sum(self._scratch)

    # -- functions ---------------------------------------------------------------------------------

    def _copy(self) -> list[str]:
        if self.squares.copy is None:
            return []
        names = [array.name for array in self.arrays]
        return self.squares.copy.function(f"{self.entry}_copy", names, 0, self.blocks.workers)

    @property
    def _passes(self) -> dict[str, int]:
        workers = self.blocks.workers
        copy = {f"{self.entry}_copy": workers} if self.squares.copy else {}
        return {**copy, f"{self.entry}_work": workers}

    @cached_property
    def _tiles(self) -> list[RegisterTile]:
        """The micro-kernels by height: for full tiles, and for the last one."""
        b, channels = self.blocks, self.stages.channels
        return [
            RegisterTile(
                name=f"{self.entry}_{rows}",
                rows=rows,
                columns=b.tile_columns,
                lanes=self.lanes,
                unroll=int(self.values["unroll"]) if rows == b.tile_rows else 1,
                prefetch=0,
                left=strided((b.tile_rows, channels), (channels, 1)),
                right=strided((channels, b.tile_columns), (b.tile_columns, 1)),
                sums=strided((b.tile_rows, b.tile_columns), (b.tile_columns, 1)),
                fetches_sums=False,
            )
            for rows in tile_extents(b.squares, b.tile_rows)
        ]

    def _tile_choice(self) -> list[str]:
        b = self.blocks
        tiles = [(tile, "") for tile in self._tiles]
        full = (b.tile_rows, b.tile_columns)
        return tile_choice(f"{self.entry}_tile", tiles, (b.squares, b.tile_columns), full)

    # -- the worker --------------------------------------------------------------------------------

    def _worker(self) -> list[str]:
        """Return the C function that computes one worker's part of the output."""
        b = self.blocks
        worker = index("worker", b.workers)
        filters, squares, _ = self._scratch
        chunks = spatial(b.row_workers, b.column_workers)
        extents = (
            ceil_div(b.squares, b.chunk_squares),
            ceil_div(self.view.column.extent, b.chunk_columns),
        )
        lines = [
            f"char *own = (char *)call->workspace + {self._copy_bytes};",
            f"float *u = (float *)(own + {worker * self._worker_bytes});",
            f"float *v = u + {filters}, *s = v + {squares};",
            *self._pointers(),
            *chunks.emit(worker, self._chunk, extents=extents, prefix="n"),
        ]
        return worker_function(f"{self.entry}_work", lines)

    def _pointers(self) -> list[str]:
        """Declare the C pointers to all arrays, at their first row, column and term."""
        product = self.view.product
        image = self._pointer("x", product.left.operand, "const ", 0)
        if self.squares.copy:
            image = "const float *x = (const float *)call->workspace;"
        lines = [
            image,
            self._pointer("r", product.right.operand, "const ", self._first(RIGHT)),
            self._pointer("c", product.output, "", self._first(OUTPUT)),
        ]
        for n, read in enumerate(product.places):
            operand = product.program.operand[read.name]
            lines.append(self._pointer(read_name(n), operand, "const ", self._first(read)))
        return lines

    def _first(self, key: Key) -> int:
        return self.squares.places[key].constant

    def _pointer(self, name: str, array: Array, constant: str, first: int) -> str:
        place = [other.name for other in self.arrays].index(array.name)
        c_type = f"{constant}{C_TYPES[array.dtype]}"
        return f"{c_type} *{name} = ({c_type} *)call->buffers[{place}] + {first};"

    def _chunk(self, part: Sequence[Index]) -> list[str]:
        """Write a worker's part: its blocks of columns and of squares."""
        b, extent = self.blocks, self.view.column.extent
        row, column = part
        blocks = repeat(b.column_blocks) * spatial(b.block_columns)
        once = self._image("0", "chunk_squares") if b.square_blocks == 1 else []
        return [
            f"const long square0 = {row * b.chunk_squares}, column0 = {column * b.chunk_columns};",
            f"const long chunk_squares = tw_least({b.squares} - square0, {b.chunk_squares});",
            f"const long chunk_columns = tw_least({extent} - column0, {b.chunk_columns});",
            *once,
            *blocks.emit(0, self._columns, extents=("chunk_columns",), prefix="b"),
        ]

    def _image(self, start: Index | str, count: str) -> list[str]:
        return [f"{self.entry}_image(x, v, square0 + {start}, {count});"]

    def _columns(self, at: Sequence[Index]) -> list[str]:
        """Write a block of columns: its filters are transformed, then all blocks of squares
        follow."""
        b = self.blocks
        first = index("column0") + at[0]
        source = (first * self.view.column.strides[RIGHT]).text
        squares = repeat(b.square_blocks) * spatial(b.block_squares)
        return [
            f"const long columns = tw_least(chunk_columns - {at[0]}, {b.block_columns});",
            f"{self.entry}_filter(r + {source}, u, columns);",
            *squares.emit(
                0, lambda at: self._squares(first, at[0]), extents=("chunk_squares",), prefix="t"
            ),
        ]

    def _squares(self, first: Index, start: Index) -> list[str]:
        """Write a block of squares: they are transformed, unless all are already, then multiplied
        by panels."""
        b = self.blocks
        panels = repeat(b.block_columns // b.tile_columns) * spatial(b.tile_columns)
        return [
            f"const long squares = tw_least(chunk_squares - {start}, {b.block_squares});",
            *(self._image(start, "squares") if b.square_blocks > 1 else []),
            *panels.emit(
                0, lambda at: self._panel(first, start, at[0]), extents=("columns",), prefix="j"
            ),
        ]

    def _panel(self, first: Index, start: Index, j: Index) -> list[str]:
        b, stages = self.blocks, self.stages
        tiles = repeat(stages.elements, ceil_div(b.block_squares, b.tile_rows))
        filters = (j // b.tile_columns * stages.panel.size).text

        def product(at: Sequence[Index]) -> list[str]:
            element, i = at
            left = stages.image.emit(element, i, 0)
            right, sums = stages.panel.emit(element, 0, 0), stages.products.emit(element, i, 0)
            return [
                f"{self.entry}_tile(v + {left}, panel + {right}, s + {sums}, "
                f"squares - {i}, {b.tile_columns}, {stages.channels}, 0);"
            ]

        column = first + j

        def moved(name: str, key: Key) -> str:
            return f"{name} + {(column * self.view.column.strides[key]).text}"

        reads = [moved(read_name(n), read) for n, read in enumerate(self.view.product.places)]
        arguments = ", ".join(["s", moved("c", OUTPUT), *reads])
        return [
            f"const float *panel = u + {filters};",
            *(tiles * spatial(1, b.tile_rows)).emit(
                0, product, extents=(None, "squares"), prefix="m"
            ),
            f"{self.entry}_output({arguments}, square0 + {start}, squares, "
            f"tw_least(columns - {j}, {b.tile_columns}));",
        ]
