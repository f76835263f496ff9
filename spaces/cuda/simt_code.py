"""The CUDA C++ of a contraction by ordinary multiply-adds.

Who does what is one task mapping over the block's tile, outermost first:

    spatial(warps) * repeat(vectors) * spatial(lanes) * repeat(rows, columns of a vector)

Both operands' tiles lie depth-major in shared memory, so that a thread reads vectors of rows of
the left one and of columns of the right one; two stages alternate, and the next tile waits in
registers while the current one is multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from spaces.cuda.block_code import WARP, BlockCode
from spaces.cuda.finish import Finish, sum_dtype
from spaces.cuda.tile_copy import TileCopy, position_type, source_of, step_of, widest_vector
from spaces.cuda.unrolled import THREAD, unrolled
from spaces.dtypes import dtype
from spaces.index import Index, index
from spaces.layout import Layout, row_major, strided
from spaces.mapping import TaskMapping, repeat, spatial
from spaces.workload import Operand


@dataclass(frozen=True)
class SimtCode(BlockCode):
    """The kernel called ``entry`` of ``product`` under the decisions ``values``."""

    # -- extents -------------------------------------------------------------------------------

    @property
    def element(self) -> str:
        """Dtype that operands are multiplied in: that of the sums."""
        return sum_dtype(self.product.workload)

    @property
    def bytes(self) -> int:
        """Bytes of an element in shared memory and registers."""
        return dtype(self.element).bytes

    @property
    def warps(self) -> tuple[int, int]:
        """Warps of a block along rows and columns."""
        return self.number("warp_rows"), self.number("warp_columns")

    @property
    def lanes(self) -> tuple[int, int]:
        """Lanes of a warp along rows and columns."""
        rows = self.number("lane_rows")
        return rows, WARP // rows

    @property
    def tile(self) -> tuple[int, int]:
        """Sums of a thread along rows and columns."""
        return self.number("thread_rows"), self.number("thread_columns")

    @property
    def vectors(self) -> tuple[int, int]:
        """Neighbouring rows and columns that a thread reads at once."""
        return min(self.tile[0], 16 // self.bytes), min(self.tile[1], 16 // self.bytes)

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of the block's tile."""
        rows, columns = (
            w * n * t for w, n, t in zip(self.warps, self.lanes, self.tile, strict=True)
        )
        return rows, columns

    @property
    def vectors_of_thread(self) -> TaskMapping:
        """Thread to the vectors (along rows, along columns) whose sums it keeps."""
        (rows, columns), (high, wide) = self.tile, self.vectors
        return spatial(*self.warps) * repeat(rows // high, columns // wide) * spatial(*self.lanes)

    @cached_property
    def sums(self) -> Layout:
        """Register of the sum at (row, column) of a thread's tile."""
        return row_major(*self.tile)

    # -- memory --------------------------------------------------------------------------------

    @cached_property
    def left(self) -> TileCopy:
        """Moves tiles of the left operand."""
        return self._copy("left", self.product.left, self.block[0], self.product.left_runs_deep)

    @cached_property
    def right(self) -> TileCopy:
        """Moves tiles of the right operand."""
        return self._copy("right", self.product.right, self.block[1], self.product.right_runs_deep)

    def _copy(self, name: str, operand: Operand, width: int, deep: bool) -> TileCopy:
        """Shared tiles are (depth, width); elements that arrive deep are put crosswise, into rows
        moved apart by a vector, so that they fall into different banks."""
        row = width + deep * (16 // self.bytes)
        source = source_of(self.product, operand)
        tile = (width, self.depth) if deep else (self.depth, width)
        return TileCopy(
            name=name,
            dtype=operand.dtype,
            source=source,
            tile=tile,
            threads=self.threads,
            vector=widest_vector(tile[1], source.shape[1], operand.element.bytes),
            step=step_of(self.product, operand, self.depth),
            shared=strided(tile, (1, row) if deep else (row, 1)),
            shared_dtype=self.element,
            integer=position_type(self.product),
        )

    # -- text ----------------------------------------------------------------------------------

    @property
    def stages(self) -> int:
        """Two: one to read while the other is written."""
        return 2

    @property
    def sums_in_thread(self) -> int:
        """Sums of a thread's tile."""
        return self.sums.size

    @property
    def declare_sums(self) -> str:
        """A flat array."""
        return f"{self.kind} sums[{self.sums.size}] = {{}};"

    def main_loop(self) -> list[str]:
        """The next tile comes into registers before, and goes on to shared memory after, the
        products of the current one."""
        return [
            *self.left.declare(),
            *self.right.declare(),
            *self._load(),
            *self._store("shared"),
            "tw::sync_block();",
            "for (int step = 0; step < steps; step++) {",
            f"  const u32 stage = shared + step % {self.stages} * {self.stage_bytes};",
            f"  const u32 next = shared + (step + 1) % {self.stages} * {self.stage_bytes};",
            "  const bool more = step + 1 < steps;",
            "  if (more) {",
            *(f"    {line}" for line in self._load()),
            "  }",
            *(f"  {line}" for line in self._multiply()),
            "  if (more) {",
            *(f"    {line}" for line in self._store("next")),
            "  }",
            "  tw::sync_block();",
            "}",
        ]

    def _load(self) -> list[str]:
        """Load the next tiles into registers, and go on to those after them."""
        return [
            *self.left.load(*self.left_corner),
            *self.right.load(*self.right_corner),
            *self.advance(),
        ]

    def _store(self, stage: str) -> list[str]:
        return [*self.left.store(stage), *self.right.store(f"{stage} + {self.left_bytes}")]

    def _multiply(self) -> list[str]:
        """All terms of a stage, added to the sums."""
        rows, columns = self.tile

        def term(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return [
                f"{self.kind} a[{rows}], b[{columns}];",
                *self._vectors(0, "a", "stage", self.left, k),
                *self._vectors(1, "b", f"stage + {self.left_bytes}", self.right, k),
                *unrolled(repeat(rows, columns), 0, product, "t"),
            ]

        def product(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            return [f"sums[{self.sums.index([i, j]).text}] += a[{i.text}] * b[{j.text}];"]

        return repeat(self.depth).emit(
            0, term, prefix="k", unroll=8, integer="int", language="cuda"
        )

    def _vectors(self, rank: int, name: str, stage: str, copy: TileCopy, k: Index) -> list[str]:
        """Load a thread's vectors along one rank of the tile, at depth ``k``."""
        width = self.vectors[rank]
        deep = (self.product.left_runs_deep, self.product.right_runs_deep)[rank]

        def body(indices: tuple[Index, ...]) -> list[str]:
            (i,) = indices
            place = copy.shared.index([i * width, k] if deep else [k, i * width])
            held = self._turn(rank, i) * width
            return [f"tw::load_shared<{width}>({name} + {held}, {stage} + {place * self.bytes});"]

        mapping = self.vectors_of_thread.project((rank,))
        return unrolled(mapping, THREAD, body, f"{name}_")

    def _turn(self, rank: int, i: Index) -> Index:
        """Which of a thread's own vectors along a rank the block's vector ``i`` is."""
        return i // self.lanes[rank] % (self.tile[rank] // self.vectors[rank])

    def finish(self) -> list[str]:
        """Vectors of a row at a time."""
        output = Finish(self.product, *self.block)
        high, wide = self.vectors

        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            row, column = index("row0") + i * high, index("column0") + j * wide
            first_row, first_column = self._turn(0, i) * high, self._turn(1, j) * wide
            lines = []
            for r in range(high):
                places = [self.sums.index([first_row + r, first_column + c]) for c in range(wide)]
                totals = [f"sums[{place.text}]" for place in places]
                lines += output.store(row + r, column, totals)
            return lines

        return unrolled(
            self.vectors_of_thread, THREAD, body, "f", None, position_type(self.product)
        )
