"""The CUDA C++ of a matrix product by ordinary multiply-adds.

One task mapping divides the block's tile among warps and lanes, outermost first:

    spatial(warps) * repeat(vectors) * spatial(lanes) * repeat(rows, columns of a vector)

Both operands' tiles lie depth-major in shared memory, so that a thread reads vectors of rows of
the left one and of columns of the right one. Two stages alternate: while the terms of one are
multiplied, the next tile goes from registers to the other, vector by vector, and the one after
that is loaded in its place. So loads have a whole step to arrive, and their instructions stand
between products. Of two sets of fragments one is read while the other is multiplied.

A multiply-add of three registers takes the register file more than a cycle, unless one of them is
also one of the multiply-add before: so rows of sums are walked to and fro.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Layout, row_major, strided
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.cuda.blocks.code import BlockCode
from tilewright.spaces.cuda.blocks.copies.block_copy import BlockCopy
from tilewright.spaces.cuda.blocks.copies.gather_copy import copy_of
from tilewright.spaces.cuda.blocks.copies.tile_copy import position_type
from tilewright.spaces.cuda.blocks.finish import Finish, sum_dtype
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.simt.sizes import SimtSizes
from tilewright.spaces.cuda.simt.whole_tiles import WholeTiles
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class SimtCode(BlockCode):
    """The kernel of one schedule, whose threads load vectors from the ring and multiply
    elements."""

    sizes: SimtSizes

    # -- extents -------------------------------------------------------------------------------

    @property
    def element(self) -> str:
        """The dtype that operands are multiplied in: that of the sums."""
        return sum_dtype(self.product)

    @property
    def bytes(self) -> int:
        """Bytes of an element in shared memory and registers."""
        return self.sizes.bytes

    @cached_property
    def lanes(self) -> tuple[int, int]:
        """Lanes of a warp along rows and columns."""
        return int(self.sizes.lane_rows(self.values)), int(self.sizes.lane_columns(self.values))

    @property
    def tile(self) -> tuple[int, int]:
        """Sums of a thread along rows and columns."""
        return self.number("thread_rows"), self.number("thread_columns")

    @cached_property
    def vectors(self) -> tuple[int, int]:
        """Neighbouring rows and columns that a thread reads at once."""
        high, wide = self.sizes.vectors(self.values)
        return int(high), int(wide)

    @cached_property
    def vectors_of_thread(self) -> TaskMapping:
        """The mapping from threads to the vectors (along rows, along columns) of their sums."""
        (rows, columns), (high, wide) = self.tile, self.vectors
        return spatial(*self.warps) * repeat(rows // high, columns // wide) * spatial(*self.lanes)

    @cached_property
    def sums(self) -> Layout:
        """The register of the sum at (row, column) of a thread's tile."""
        return row_major(*self.tile)

    @cached_property
    def tiles(self) -> WholeTiles:
        """The places of blocks' tiles and of steps."""
        return WholeTiles(self.product, self.block, self.depth)

    # -- memory --------------------------------------------------------------------------------

    def copy(self, name: str, operand: Array, width: int, deep: bool) -> BlockCopy:
        """Return the copy of an operand's tiles, which are (depth, width) in shared memory."""
        row = int(self.sizes.row(width, deep))
        tile = (width, self.depth) if deep else (self.depth, width)
        shared = strided(tile, (1, row) if deep else (row, 1))
        return copy_of(self.product, operand, name, tile, self.threads, shared, self.element)

    # -- text ----------------------------------------------------------------------------------

    @property
    def sums_in_thread(self) -> int:
        """Sums of a thread's tile."""
        return self.sums.size

    @property
    def declare_sums(self) -> str:
        """The C declaration of the sums, a flat array."""
        return f"{self.kind} sums[{self.sums.size}] = {{}};"

    def corner(self) -> list[str]:
        """Print where a tile starts; it is moved back rather than reach beyond the output."""
        return self.tiles.corner()

    def main_loop(self) -> list[str]:
        """Print the main loop, which this module's text describes.

        The first step's tile is in shared memory before, and the second one's is being loaded.
        """
        rows, columns = self.tile
        return [
            *self.left.declare(),
            *self.right.declare(),
            *self._load(of_first_step=True),
            *self._advance_first(),
            *self._store("shared"),
            "if (steps > 1) {",
            *(f"  {line}" for line in (*self._load(), *self._advance())),
            "}",
            "tw::sync_block();",
            f"u32 stage = shared, next = shared + {self.stage_bytes};",
            f"{self.kind} a[{2 * rows}], b[{2 * columns}];",
            *self._fragments(0),
            "for (int step = 0; step < steps; step++) {",
            "  const bool more = step + 2 < steps;",
            *(f"  {line}" for line in self._step()),
            "}",
        ]

    def _load(self, of_first_step: bool = False) -> list[str]:
        """Print how the next tiles are loaded into registers."""
        left, right = (self.tiles.ends(rank, of_first_step) for rank in (0, 1))
        return [
            *self.left.load(*self.left_corner, left),
            *self.right.load(*self.right_corner, right),
        ]

    def _store(self, stage: str) -> list[str]:
        return [*self.left.store(stage), *self.right.store(f"{stage} + {self.left_bytes}")]

    def _advance(self) -> list[str]:
        return [*self.left.advance(), *self.right.advance()]

    def _advance_first(self) -> list[str]:
        copies = (self.left, self.right)
        return [line for c in copies for line in c.advance(f"first_terms * {c.step // self.depth}")]

    def _step(self) -> list[str]:
        """Print how the terms of a stage are added to the sums, moves of tiles in between."""
        moves, products = self._moves(), [self._products(0), self._products(1)]
        spread = min(self.number("copy_spread"), self.depth - 1)
        lines: list[str] = []
        for k in range(self.depth - 1):
            here = [m for i, m in enumerate(moves) if i * spread // len(moves) == k]
            lines += [*self._fragments(k + 1), *chain.from_iterable(here), *products[k % 2]]
        return [
            *lines,
            *self._advance(),
            "const u32 read = stage;",
            "stage = next;",
            "next = read;",
            "tw::sync_block();",
            *self._fragments(0),
            *products[(self.depth - 1) % 2],
        ]

    def _moves(self) -> list[list[str]]:
        """Return lines for each vector that a thread moves: its store, and its successor's load."""
        moves = []
        for rank, copy in enumerate((self.left, self.right)):
            stage = ("next", f"next + {self.left_bytes}")[rank]
            corner = (self.left_corner, self.right_corner)[rank]
            ends = self.tiles.ends(rank, of_first_step=False)
            for turn in range(copy.turns):
                load = [f"  {line}" for line in copy.load(*corner, ends, turn)]
                moves.append([*copy.store(stage, turn), "if (more) {", *load, "}"])
        return moves

    def _products(self, k: int) -> list[str]:
        """Print the products of the terms whose fragments are in set ``k``."""
        rows, columns = self.tile

        def product(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            place = self.sums.index([i, index("column", columns)])
            left, right = k * rows + i, k * columns + index("column")
            total = f"sums[{place.text}]"
            return [
                "{",
                f"  const int column = {i} % 2 ? {columns - 1} - {j} : {j};",
                f"  {total} = tw::fused(a[{left.text}], b[{right.text}], {total});",
                "}",
            ]

        return unrolled(repeat(rows, columns), 0, product, "t")

    def _fragments(self, k: int) -> list[str]:
        """Print the loads of a thread's vectors of term ``k``."""
        return [
            *self._vectors(0, "a", "stage", self.left, k),
            *self._vectors(1, "b", f"stage + {self.left_bytes}", self.right, k),
        ]

    def _vectors(self, rank: int, name: str, stage: str, copy: BlockCopy, k: int) -> list[str]:
        """Print the loads of a thread's vectors along one rank of the tile, at depth ``k``."""
        width, depth = self.vectors[rank], index(k)
        deep = (self.product.left_runs_deep, self.product.right_runs_deep)[rank]

        def body(indices: tuple[Index, ...]) -> list[str]:
            (i,) = indices
            place = copy.shared.index([i * width, depth] if deep else [depth, i * width])
            held = k % 2 * self.tile[rank] + self._turn(rank, i) * width
            return [f"tw::load_shared<{width}>({name} + {held}, {stage} + {place * self.bytes});"]

        mapping = self.vectors_of_thread.project((rank,))
        return unrolled(mapping, THREAD, body, f"{name}_")

    def _turn(self, rank: int, i: Index) -> Index:
        """Return which of a thread's own vectors along a rank the block's vector ``i`` is."""
        return i // self.lanes[rank] % (self.tile[rank] // self.vectors[rank])

    def finish(self) -> list[str]:
        """Print how sums are finished and stored, a vector of a row at a time."""
        output = Finish(self.product, *self.block, self.tiles.first)
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
