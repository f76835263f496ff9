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

    @cached_property
    def left(self) -> SharedTile:
        """The rows of the left operand."""
        rows = Side(self._chained.rows, self.block.rows, "first_row", ends=False)
        depth = self._side(self._chained.depth, self.block.sizes.depth)
        tile = self._tile(self._chained.left, rows, depth)
        return replace(tile, threads=self.block.threads, thread=THREAD)

    def right(self, tile: str) -> SharedTile:
        """A tile of keys of the right operand."""
        depth = self._side(self._chained.depth, self.block.sizes.depth)
        return self._along(self._chained.right, self._keys_side(tile), depth)

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
        steps = self.block.sizes.depth // FRAGMENT

        def load(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return replace(self.row_fragments, name=f"q[{k.text}]").load("shared", k)

        return [
            *lines,
            f"u32 q[{steps}][{self.block.slices}][4];",
            "tw::cp_async_wait<0>();",
            "tw::sync_block();",
            *unrolled(repeat(steps), 0, load, "k"),
            "tw::sync_block();",
        ]

    def load_keys(self, tile: str, stage: str) -> list[str]:
        """Start to move a tile of keys, and of what matrices have for them."""
        right = self.right(tile)
        lines, place = right.copy(stage), right.bytes
        for weighing in self._chained.weighings:
            matrix = self.matrix(weighing.matrix, tile)
            lines += matrix.copy(f"{stage} + {place}")
            place += matrix.bytes
        return lines
