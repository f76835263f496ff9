"""The operands of a chained kernel: their tiles in shared memory, and fragments of those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.chained.block import Block
from tilewright.spaces.cuda.chained.kinds import FLOAT8
from tilewright.spaces.cuda.chained.tiles import SharedTile, Side
from tilewright.spaces.cuda.mma.byte_fragments import ByteFragments
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, FRAGMENT_BYTES, Fragments
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Operands:
    """Of a block: its rows of the left operand, tiles of keys of the right one, and what matrices
    have for the same keys. A tile of keys begins with the key that C text says."""

    block: Block

    @property
    def score_kind(self) -> str:
        """The dtype of scores' factors."""
        return self.block.sizes.kinds.scores

    def _tile(self, value: Expression, slow: Side, fast: Side, kind: str) -> SharedTile:
        """One of elements of a dtype that a team moves."""
        block = self.block
        return SharedTile(block.batch, value, slow, fast, kind, block.team_threads, block.thread)

    def _keys_side(self, tile: str) -> Side:
        return self._side(self.block.chained.key, self.block.keys, tile)

    def _side(self, part: Part, extent: int, first: str = "0") -> Side:
        ends = part.extent % extent > 0
        return Side((part,), extent, first, ends, whole=not ends)

    @property
    def depth(self) -> Side:
        """What a tile has of the terms of a score: all."""
        return self._side(self.block.chained.depth, self.block.sizes.depth)

    @property
    def rows(self) -> Side:
        """The block's rows."""
        return Side(self.block.chained.rows, self.block.rows, "first_row", ends=False)

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
        """A tile of keys of the right operand."""
        return self._along(
            self.block.chained.right, self._keys_side(tile), self.depth, self.score_kind
        )

    def matrix(
        self, matrix: Expression, tile: str, within: tuple[str, str] | None = None
    ) -> SharedTile:
        """What a matrix has for a tile of keys."""
        width = self._side(self.block.chained.width, self.block.columns, "block_column")
        found = self._along(matrix, self._keys_side(tile), width, self.block.weight_kind)
        if found.slow.parts == (self.block.chained.key,):
            return replace(found, slow=replace(found.slow, within=within))
        return replace(found, fast=replace(found.fast, within=within))

    def _along(self, value: Expression, keys: Side, other: Side, kind: str) -> SharedTile:
        """Keys slow, or fast where the array lies along them and ``ldmatrix`` transposes it."""
        usual = self._tile(value, keys, other, kind)
        turned = self._tile(value, other, keys, kind)
        can_turn = kind not in FLOAT8 and not usual.vector and turned.vector
        return turned if can_turn else usual

    def fragments(
        self, name: str, tile: SharedTile, keys_are_columns: bool
    ) -> Fragments | ByteFragments:
        """The right operand of a product of all warps."""
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
        """Those of the left operand, of each warp its own."""
        warps, thread = (self.block.number("warps"), 1), self.block.thread
        left = self.left
        return Fragments(
            "a", 0, warps, self.block.slices, left.layout, True, left.element_bytes, thread
        )

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
        """Start to move what matrices have for a tile of keys: zeros for those that no row of the
        block sees, which may be anything."""
        whole = self._copies(tile, stage)
        if not whole or not self.block.chained.bounds:
            return whole
        inside = f"{tile} >= first_key && {tile} + {self.block.keys} <= last_key"
        some = self._copies(tile, stage, ("first_key", "last_key"))
        return [f"if ({inside}) {{", *indented(whole), "} else {", *indented(some), "}"]

    def _copies(self, tile: str, stage: str, within: tuple[str, str] | None = None) -> list[str]:
        """Start to move what matrices have for the keys of a tile that are ``within``."""
        values = [weighing.matrix for weighing in self.block.chained.weighings]
        pairs = zip(values, self.matrix_places(stage), strict=True)
        copies = (self.matrix(value, tile, within).copy(place) for value, place in pairs)
        return [line for copy in copies for line in copy]

    def matrix_places(self, stage: str) -> list[str]:
        """Where that is of each matrix: behind the keys."""
        return self._places(stage, self.right("tile").bytes)

    def _places(self, stage: str, place: int) -> list[str]:
        """Matrices one behind the other, the first of them at ``place``."""
        places = []
        for weighing in self.block.chained.weighings:
            places.append(f"{stage} + {place}")
            place += self.matrix(weighing.matrix, "tile").bytes
        return places
