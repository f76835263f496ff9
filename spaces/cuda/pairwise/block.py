"""The plan of one block of a pass: its names in C, and its tiles in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cuda.chained.tiles import SharedTile, Side
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.ends import End
from tilewright.spaces.cuda.chains.scopes import ThreadScope
from tilewright.spaces.cuda.chains.spans import Spans
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, Fragments
from tilewright.spaces.cuda.pairwise.passes import Matrix, Pass, padded
from tilewright.spaces.cuda.pairwise.sizes import NUMBER, PassSizes
from tilewright.spaces.derivation.pairwise.view import Pairwise
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.scopes import Integer
from tilewright.spaces.language.tree import AxisValue, Expression, Read

WIDE = 8
"""Columns of an accumulator."""
COLUMN = f"lane % 4 * 2 + j * {WIDE}"
"""C text of the first of the two columns that a lane has of accumulator ``j``."""
ROWS = 2
"""Points of a lane in each fragment of sixteen that stay."""


@dataclass(frozen=True)
class Block:
    """A block of a pass under the decisions ``values``; products are multiplied in ``kind``."""

    of: Pass
    values: Mapping[str, int | str]
    kind: str

    def _number(self, name: str) -> int:
        return int(self.values[name])

    @property
    def sizes(self) -> PassSizes:
        """The sizes of blocks."""
        return PassSizes(self.of)

    @property
    def warps(self) -> int:
        """Warps of the block."""
        return self._number("warps")

    @property
    def fragments(self) -> int:
        """Fragments of sixteen points of a warp that stay."""
        return self._number("fragments")

    @property
    def tile(self) -> int:
        """Points of a tile that passes."""
        return self._number("tile")

    @property
    def stages(self) -> int:
        """Tiles in shared memory at a time."""
        return self._number("stages")

    @property
    def stay(self) -> int:
        """Points that stay."""
        return int(self.sizes.stay(self.values))

    @property
    def stage_bytes(self) -> int:
        """Bytes of a tile in shared memory."""
        return int(self.sizes.stage_bytes(self.values))

    # -- names -------------------------------------------------------------------------------------

    @cached_property
    def batch(self) -> Access[Pairwise]:
        """Names of the axes that are known for a block's product."""
        view = self.of.pairwise
        return Access(view, {part.name: f"b{i}" for i, part in enumerate(view.batch)})

    @cached_property
    def staying(self) -> Access[Pairwise]:
        """Names of the axes that are known for point ``r`` of a lane that stays."""
        return self.batch.knowing({p.name: f"p{i}[r]" for i, p in enumerate(self.of.staying)})

    @property
    def pass_names(self) -> Mapping[str, str]:
        """Names of the axes of a point that passes."""
        return {part.name: f"t{i}" for i, part in enumerate(self.of.passing)}

    @cached_property
    def pair(self) -> Access[Pairwise]:
        """Names of the axes that are known for a pair."""
        return self.staying.knowing(self.pass_names)

    def pair_leaf(self, node: Expression) -> str | None:
        """Return C text of a leaf that is known for a pair, and not for the point that stays."""
        inner = node.node if isinstance(node, Integer) else node
        if not isinstance(inner, AxisValue | Read) or self.of.is_staying(inner):
            return None
        return self.pair.leaf(node)

    def counting(self, scope: ThreadScope) -> list[str]:
        """Return C tests that a pair counts."""
        view = self.of.pairwise
        bounds = [f"{self.pair.text(index)} >= 0" for index in view.bounds]
        return [*bounds, *map(scope.condition, view.conditions)]

    def sum(self, n: int) -> str:
        """Return C text of element ``e`` of accumulator ``j`` of sum ``n`` of point ``r``."""
        return f"sums{n}[r / 2][j][r % 2 * 2 + e]"

    @property
    def spans(self) -> Spans:
        """The ranges of keys that rows see."""
        return Spans(self.batch)

    @property
    def stay_number(self) -> str:
        """C text of the number of point ``r`` of a lane that stays."""
        first = f"first_point + warp * {self.fragments * FRAGMENT}"
        return f"{first} + r / 2 * 16 + r % 2 * 8 + lane / 4"

    # -- shared memory -----------------------------------------------------------------------------

    def stay_tile(self, matrix: Matrix) -> SharedTile:
        """Return the tile of a factor that stays."""
        side = Side(End(self.of.staying), self.stay, "first_point", ends=False)
        return self._tile(matrix, side)

    def pass_tile(self, matrix: Matrix, first: str) -> SharedTile:
        """Return the tile of a matrix whose points pass, from the ``first`` on.

        Points lie along its fast side where the array has them so.
        """
        ends = self.of.pass_count % self.tile > 0
        points = Side(End(self.of.passing), self.tile, first, ends, whole=not ends)
        usual = self._tile(matrix, points)
        turned = self._tile(matrix, points, turned=True)
        return turned if not usual.vector and turned.vector else usual

    def _tile(self, matrix: Matrix, points: Side, turned: bool = False) -> SharedTile:
        value, part = matrix
        wide = _side(part)
        slow, fast = (wide, points) if turned else (points, wide)
        return SharedTile(self.batch, value, slow, fast, self.kind, self.warps * 32)

    @property
    def stay_place(self) -> int:
        """The place in shared memory of the first factor that stays: behind all stages."""
        return self.stages * self.stage_bytes

    def stay_places(self) -> Iterator[tuple[Matrix, int]]:
        """Yield the factors that stay, each with its place."""
        place = self.stay_place
        for matrix in self.of.stay_matrices:
            yield matrix, place
            place += self.stay_tile(matrix).bytes

    def pass_places(self) -> Iterator[tuple[Matrix, int]]:
        """Yield the matrices whose points pass, each with its place in a stage."""
        place = 0
        for matrix in self.of.pass_matrices:
            yield matrix, place
            place += self.pass_tile(matrix, "tile").bytes

    def number_place(self, n: int) -> int:
        """Return the place in a stage of the numbers ``n`` of points that pass."""
        return self.stage_bytes - (len(self.of.numbers) - n) * NUMBER * self.tile

    def stay_fragments(self, matrix: Matrix) -> Fragments:
        """Return the fragments ``a`` of a factor that stays, of each warp's own points."""
        layout = self.stay_tile(matrix).layout
        return Fragments("a", 0, (self.warps, 1), self.fragments, layout, True, 2)

    def pass_fragments(self, matrix: Matrix, points_are_columns: bool) -> Fragments:
        """Return the fragments ``b`` of a matrix whose points pass: columns of a product, or what
        is summed over."""
        tile = self.pass_tile(matrix, "tile")
        columns = self.tile if points_are_columns else padded(matrix[1])
        deep = (tile.slow.parts == self.of.passing) == points_are_columns
        count = columns // FRAGMENT
        return Fragments("b", 1, (self.warps, 1), count, tile.layout, deep, 2)


def _side(part: Part) -> Side:
    ends = part.extent % FRAGMENT > 0
    return Side(End((part,)), padded(part), "0", ends, whole=not ends)
