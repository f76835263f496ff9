"""The operands of a chained kernel: their tiles in shared memory, and fragments of those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from spaces.algebra.index import Index
from spaces.algebra.mapping import repeat
from spaces.cuda.blocks.unrolled import THREAD, unrolled
from spaces.cuda.chained.block import Block
from spaces.cuda.chained.tiles import BYTES, SharedTile, Side
from spaces.cuda.mma.fragments import FRAGMENT, Fragments
from spaces.derivation.chained.view import Chained
from spaces.derivation.products.splitting import Part
from spaces.language.tree import Expression


@dataclass(frozen=True)
class Operands:
    """Of a block: its rows of the left operand, tiles of keys of the right one, and what matrices
    have for the same keys. A tile of keys begins with the key that C text says."""

    block: Block

    @property
    def _chained(self) -> Chained:
        return self.block.chained

    def _tile(self, value: Expression, slow: Side, fast: Side) -> SharedTile:
        """One that a team moves."""
        block = self.block
        return SharedTile(
            block.batch, value, slow, fast, block.dtype, block.team_threads, block.thread
        )

    def _keys_side(self, tile: str) -> Side:
        return self._side(self._chained.key, self.block.keys, tile)

    def _side(self, part: Part, extent: int, first: str = "0") -> Side:
        ends = part.extent % extent > 0
        return Side((part,), extent, first, ends, whole=not ends)

    @property
    def depth(self) -> Side:
        """What a tile has of the terms of a score: all."""
        return self._side(self._chained.depth, self.block.sizes.depth)

    @property
    def rows(self) -> Side:
        """The block's rows."""
        return Side(self._chained.rows, self.block.rows, "first_row", ends=False)

    @property
    def steps(self) -> int:
        """Fragments of a tile along its depth."""
        return self.depth.extent // FRAGMENT

    @cached_property
    def left(self) -> SharedTile:
        """The rows of the left operand."""
        tile = self._tile(self._chained.left, self.rows, self.depth)
        return replace(tile, threads=self.block.threads, thread=THREAD)

    def right(self, tile: str) -> SharedTile:
        """A tile of keys of the right operand."""
        return self._along(self._chained.right, self._keys_side(tile), self.depth)

    def matrix(self, matrix: Expression, tile: str) -> SharedTile:
        """What a matrix has for a tile of keys."""
        width = self._side(self._chained.width, self.block.columns, "block_column")
        return self._along(matrix, self._keys_side(tile), width)

    def _along(self, value: Expression, keys: Side, other: Side) -> SharedTile:
        """Keys slow, or fast where the array lies along them."""
        usual = self._tile(value, keys, other)
        turned = self._tile(value, other, keys)
        return turned if not usual.vector and turned.vector else usual

    def fragments(self, name: str, tile: SharedTile, keys_are_columns: bool) -> Fragments:
        """The right operand of a product of all warps."""
        keys_slow = tile.slow.parts == (self._chained.key,)
        count = (self.block.keys if keys_are_columns else self.block.columns) // FRAGMENT
        deep = keys_slow == keys_are_columns
        warps, thread = (self.block.number("warps"), 1), self.block.thread
        return Fragments(name, 1, warps, count, tile.layout, deep, BYTES, thread)

    @property
    def row_fragments(self) -> Fragments:
        """Those of the left operand, of each warp its own."""
        warps, thread = (self.block.number("warps"), 1), self.block.thread
        return Fragments("a", 0, warps, self.block.slices, self.left.layout, True, BYTES, thread)

    def load_rows(self) -> list[str]:
        """The block's rows of the left operand, and into registers if they are to stay there."""
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
        """The fragments ``a`` of a warp's rows in shared memory, for those ``k`` of keys."""
        return self.row_fragments.load(f"shared + {self.block.rings_bytes}", k)

    def load_keys(self, tile: str, stage: str) -> list[str]:
        """Start to move a tile of keys, and of what matrices have for them."""
        return [*self.right(tile).copy(stage), *self.load_matrices(tile, stage)]

    def load_matrices(self, tile: str, stage: str) -> list[str]:
        """Start to move what matrices have for a tile of keys."""
        matrices = [self.matrix(weighing.matrix, tile) for weighing in self._chained.weighings]
        places = self.matrix_places(stage)
        copies = (m.copy(place) for m, place in zip(matrices, places, strict=True))
        return [line for copy in copies for line in copy]

    def matrix_places(self, stage: str) -> list[str]:
        """Where that is of each matrix: behind the keys."""
        return self._places(stage, self.right("tile").bytes)

    def _places(self, stage: str, place: int) -> list[str]:
        """Matrices one behind the other, the first of them at ``place``."""
        places = []
        for weighing in self._chained.weighings:
            places.append(f"{stage} + {place}")
            place += self.matrix(weighing.matrix, "tile").bytes
        return places
