"""The operands of a chained kernel: their tiles in shared memory, and fragments of those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.chained.block import Block
from tilewright.spaces.cuda.chained.kinds import FLOAT8
from tilewright.spaces.cuda.chained.tiles import SharedTile, Side
from tilewright.spaces.cuda.chains.ends import End, rows_of
from tilewright.spaces.cuda.mma.byte_fragments import ByteFragments
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, FRAGMENT_BYTES, Fragments
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Operands:
    """The operands of a block: rows of the left one, tiles of keys of the others.

    The right one and the matrices have tiles of keys; the first key of a tile is given as C text.
    """

    block: Block

    @property
    def score_kind(self) -> str:
        """The dtype of scores' factors."""
        return self.block.sizes.kinds.scores

    def _tile(self, value: Expression, slow: Side, fast: Side, kind: str) -> SharedTile:
        """Return a tile of elements of dtype ``kind`` that a team copies."""
        block = self.block
        return SharedTile(block.batch, value, slow, fast, kind, block.team_threads, block.thread)

    def _keys_side(self, tile: str) -> Side:
        return self._side(self.block.chained.key, self.block.keys, tile)

    def _side(self, part: Part, extent: int, first: str = "0") -> Side:
        end = End((part,), part.axis == self.block.chained.open_axis)
        ends = not end.is_whole(extent)
        return Side(end, extent, first, ends, whole=not ends)

    @property
    def depth(self) -> Side:
        """The side of a tile along the terms of a score: all of them."""
        return self._side(self.block.chained.depth, self.block.sizes.depth)

    @property
    def rows(self) -> Side:
        """The side of a tile along the block's rows."""
        return Side(rows_of(self.block.chained), self.block.rows, "first_row", ends=False)

    @property
    def steps(self) -> int:
        """Fragments of a tile along its depth."""
        return self.depth.extent * self.block.sizes.score_bytes // FRAGMENT_BYTES

    @cached_property
    def left(self) -> SharedTile:
        """The rows of the left operand."""
        tile = self._tile(self.block.chained.left, self.rows, self.depth, self.score_kind)
        return replace(tile, threads=self.block.threads, thread=THREAD)

    def right(self, tile: str) -> SharedTile:
        """Return a tile of keys of the right operand."""
        return self._along(
            self.block.chained.right, self._keys_side(tile), self.depth, self.score_kind
        )

    def matrix(
        self, matrix: Expression, tile: str, within: tuple[str, str] | None = None
    ) -> SharedTile:
        """Return a matrix's tile for a tile of keys."""
        width = self._side(self.block.chained.width, self.block.columns, "block_column")
        found = self._along(matrix, self._keys_side(tile), width, self.block.weight_kind)
        if found.slow.parts == (self.block.chained.key,):
            return replace(found, slow=replace(found.slow, within=within))
        return replace(found, fast=replace(found.fast, within=within))

    def _along(self, value: Expression, keys: Side, other: Side, kind: str) -> SharedTile:
        """Return a tile with keys slow; or fast where the array has it so and ldmatrix can
        transpose."""
        usual = self._tile(value, keys, other, kind)
        turned = self._tile(value, other, keys, kind)
        can_turn = kind not in FLOAT8 and not usual.vector and turned.vector
        return turned if can_turn else usual

    def fragments(
        self, name: str, tile: SharedTile, keys_are_columns: bool
    ) -> Fragments | ByteFragments:
        """Return the right operand's fragments of a product of all warps."""
        count = (self.block.keys if keys_are_columns else self.block.columns) // FRAGMENT
        warps, thread = self.block.number("warps"), self.block.thread
        if self.block.has_byte_weights and not keys_are_columns:
            return ByteFragments(name, warps, count, tile.layout, thread)
        keys_slow = tile.slow.parts == (self.block.chained.key,)
        deep = keys_slow == keys_are_columns
        size = tile.element_bytes
        return Fragments(name, 1, (warps, 1), count, tile.layout, deep, size, thread)

    @property
    def row_fragments(self) -> Fragments:
        """The fragments of the left operand, of each warp's own rows."""
        warps, thread = (self.block.number("warps"), 1), self.block.thread
        left = self.left
        return Fragments(
            "a", 0, warps, self.block.slices, left.layout, True, left.element_bytes, thread
        )

    def load_rows(self) -> list[str]:
        """Print how the block's rows are copied, and go to registers if they are to stay there."""
        place = "shared" if self.block.holds_rows else f"shared + {self.block.rings_bytes}"
        lines = [*self.left.copy(place), "tw::cp_async_commit();"]
        if not self.block.holds_rows:
            return lines

        def load(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return replace(self.row_fragments, name=f"q[{k.text}]").load("shared", k)

        return [
            *lines,
            f"u32 q[{self.steps}][{self.block.slices}][4];",
            "tw::cp_async_wait<0>();",
            "tw::sync_block();",
            *unrolled(repeat(self.steps), 0, load, "k"),
            "tw::sync_block();",
        ]

    def load_row_fragments(self, k: Index) -> list[str]:
        """Print how a warp's rows at step ``k`` of the depth go to the fragments ``a``."""
        return self.row_fragments.load(f"shared + {self.block.rings_bytes}", k)

    def load_keys(self, tile: str, stage: str) -> list[str]:
        """Print how copies of a tile of keys, and of the matrices' tiles for it, are started."""
        return [*self.right(tile).copy(stage), *self.load_matrices(tile, stage)]

    def load_matrices(self, tile: str, stage: str) -> list[str]:
        """Print how copies of the matrices' tiles for a tile of keys are started.

        Rows of keys that no row of the block sees become zeros, for they may be anything.
        """
        whole = self._copies(tile, stage)
        if not whole or not self.block.chained.bounds:
            return whole
        inside = f"{tile} >= first_key && {tile} + {self.block.keys} <= last_key"
        some = self._copies(tile, stage, ("first_key", "last_key"))
        return CUDA.when(inside, whole, some)

    def _copies(self, tile: str, stage: str, within: tuple[str, str] | None = None) -> list[str]:
        """Print how copies of the matrices' rows for the keys that are ``within`` are started."""
        values = [weighing.matrix for weighing in self.block.chained.weighings]
        pairs = zip(values, self.matrix_places(stage), strict=True)
        copies = (self.matrix(value, tile, within).copy(place) for value, place in pairs)
        return [line for copy in copies for line in copy]

    def matrix_places(self, stage: str) -> list[str]:
        """Return where the tile of each matrix is in a stage: behind the keys."""
        return self._places(stage, self.right("tile").bytes)

    def _places(self, stage: str, place: int) -> list[str]:
        """Return places of matrices' tiles one behind the other, the first at ``place``."""
        places = []
        for weighing in self.block.chained.weighings:
            places.append(f"{stage} + {place}")
            place += self.matrix(weighing.matrix, "tile").bytes
        return places
