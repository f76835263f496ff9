"""The plan of a block: its names in C, and its tiles in shared memory.

Shared memory has a ring of stages, each with the left and right factors and the matrix of a chunk;
behind it the weighed scores of a chunk, and the numbers of two chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.cuda.chained.tiles import SharedTile, Side
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.ends import End
from tilewright.spaces.cuda.chunked.sizes import BYTES, NUMBER, ChunkSizes
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, Fragments, swizzled_tile
from tilewright.spaces.derivation.recurrent.chunks import Chunks
from tilewright.spaces.language.tree import Expression

WIDE = 8
"""Columns of an accumulator."""
POINT = "point"
"""C variable of a position."""


@dataclass(frozen=True)
class Block:
    """A block of ``view`` under the decisions ``values``; products are multiplied in ``kind``."""

    view: Chunks
    values: Mapping[str, int | str]
    kind: str

    @cached_property
    def sizes(self) -> ChunkSizes:
        """The sizes of blocks."""
        return ChunkSizes(self.view)

    @property
    def warps(self) -> int:
        """Warps of the block."""
        return int(self.values["warps"])

    @property
    def fragments(self) -> int:
        """Fragments of sixteen columns of a warp."""
        return int(self.values["fragments"])

    @property
    def chunk(self) -> int:
        """Positions of a chunk."""
        return int(self.values["chunk"])

    @property
    def rows(self) -> int:
        """Fragments of sixteen positions of a chunk."""
        return self.chunk // FRAGMENT

    @property
    def steps(self) -> int:
        """Fragments along the terms of a score."""
        return self.sizes.depth // FRAGMENT

    @property
    def stages(self) -> int:
        """Chunks in shared memory at a time."""
        return int(self.values["stages"])

    @property
    def chunks(self) -> int:
        """Chunks of all positions."""
        return int(self.sizes.chunks(self.values))

    @property
    def segments(self) -> int:
        """Segments of all positions."""
        return int(self.values["segments"])

    @property
    def stage_bytes(self) -> int:
        """Bytes of the tiles of a chunk."""
        return int(self.sizes.stage_bytes(self.values))

    # -- names -------------------------------------------------------------------------------------

    @cached_property
    def batch(self) -> Access[Chunks]:
        """Names of the axes that are known for a block's product."""
        return Access(self.view, {part.name: f"b{i}" for i, part in enumerate(self.view.batch)})

    @cached_property
    def at(self) -> Access[Chunks]:
        """Names of the axes that are known for a position."""
        return self.batch.knowing({self.view.key.name: POINT})

    # -- tiles -------------------------------------------------------------------------------------

    def tiles(self, first: str) -> Sequence[SharedTile]:
        """Return the tiles of the left and right factors and of the matrix from a position on."""
        view = self.view
        inner = self._side(End(view.inner), self.sizes.depth, "0")
        columns = self._side(End((view.width,)), self._columns, "first_column")
        factors = (view.left, inner), (view.right, inner), (view.matrix, columns)
        return [self._tile(value, fast, first) for value, fast in factors]

    @property
    def _columns(self) -> int:
        return int(self.sizes.columns(self.values))

    def _tile(self, value: Expression, fast: Side, first: str) -> SharedTile:
        points = self._side(End((self.view.key,)), self.chunk, first)
        return SharedTile(self.batch, value, points, fast, self.kind, self.warps * 32)

    @staticmethod
    def _side(end: End, extent: int, first: str) -> Side:
        ends = not end.is_whole(extent)
        return Side(end, extent, first, ends, whole=not ends)

    @property
    def places(self) -> Sequence[int]:
        """The places of these tiles in a stage."""
        left, right, _ = (tile.bytes for tile in self.tiles("0"))
        return 0, left, left + right

    @property
    def _layouts(self) -> Sequence[Layout]:
        return [tile.layout for tile in self.tiles("0")]

    @property
    def score_layout(self) -> Layout:
        """The layout of the weighed scores."""
        return swizzled_tile(self.chunk, self.chunk, BYTES)

    @property
    def matrix_layout(self) -> Layout:
        """The layout of the matrix of a chunk."""
        return self._layouts[2]

    @property
    def score_place(self) -> int:
        """The place of the weighed scores."""
        return self.stages * self.stage_bytes

    @property
    def number_place(self) -> int:
        """The place of the numbers of the first of two chunks."""
        return self.score_place + int(self.sizes.score_bytes(self.values))

    @property
    def turn_bytes(self) -> int:
        """Bytes of the numbers of a chunk."""
        return int(self.sizes.turn_bytes(self.values))

    def number(self, turn: str, name: str, position: str) -> str:
        """Return C text of the address of a number of a chunk's position, in the numbers at
        ``turn``."""
        place = self.sizes.numbers.index(name) * self.chunk * NUMBER
        return f"{turn} + {place} + ({position}) * {NUMBER}"

    def kept(self, turn: str) -> str:
        """Return C text of the address of the power of a whole chunk."""
        return f"{turn} + {len(self.sizes.numbers) * self.chunk * NUMBER}"

    # -- fragments ---------------------------------------------------------------------------------

    @property
    def score_warps(self) -> tuple[int, int]:
        """Warps along the rows and the columns of a chunk's scores."""
        rows = int(self.sizes.score_rows(self.values))
        return rows, self.warps // rows

    def score_left(self) -> Fragments:
        """Return the left factors of a warp's scores."""
        rows, _ = self.score_warps
        return Fragments("a", 0, self.score_warps, self.rows // rows, self._layouts[0], True, BYTES)

    def score_right(self) -> Fragments:
        """Return the right factors of a warp's scores."""
        _, across = self.score_warps
        count = self.rows // across
        return Fragments("b", 1, self.score_warps, count, self._layouts[1], True, BYTES)

    def reading(self) -> Fragments:
        """Return the left factors of all positions, with which a state is read."""
        return Fragments("a", 0, (1, self.warps), self.rows, self._layouts[0], True, BYTES)

    def weighed(self) -> Fragments:
        """Return the weighed scores of sixteen positions."""
        return Fragments("a", 0, (1, self.warps), 1, self.score_layout, True, BYTES)

    def matrix(self) -> Fragments:
        """Return the matrix of a warp's columns, to be multiplied by scores."""
        own = (1, self.warps)
        return Fragments("b", 1, own, self.fragments, self._layouts[2], False, BYTES)

    def added_left(self) -> Fragments:
        """Return the same, turned: its columns are the rows of a state."""
        own = (self.warps, 1)
        return Fragments("a", 0, own, self.fragments, self._layouts[2], False, BYTES)

    def added_right(self) -> Fragments:
        """Return the right factors of all positions, which join a state."""
        return Fragments("b", 1, (self.warps, 1), self.steps, self._layouts[1], False, BYTES)
