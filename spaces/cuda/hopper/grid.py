"""Which tile a block computes when: a persistent grid that walks the output's tiles in an order.

Each cluster of blocks takes every n-th place of the order, n being the clusters at work, so that
what runs at the same time is near in the order and finds each other's loads in L2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.tile_grid import RASTERS, TileGrid

ORDERS = (*RASTERS, "hilbert")
MOST_IN_TABLE = 1 << 14
"""Places of a Hilbert order that are written into a kernel as a table."""


@dataclass(frozen=True)
class PersistentGrid:
    """``tiles`` along (rows, columns) of ``depth_tiles`` steps each, taken by clusters of
    ``cluster`` tiles; ``order`` is one of :data:`ORDERS`, the first two in bands of ``group``.

    ``splits`` clusters share the depth of a tile or, ``together``, as many blocks of one cluster,
    each of which then takes one place only. The device holds ``slots`` blocks at a time. Of a
    batch, ``batches`` products follow each other.
    """

    tiles: tuple[int, int]
    cluster: tuple[int, int]
    depth_tiles: int
    splits: int
    order: str
    group: int
    slots: int
    together: bool = False
    batches: int = 1

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return self.cluster[0] * self.cluster[1] * (self.splits if self.together else 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Clusters of tiles along rows and columns."""
        rows, columns = (int(ceil_div(t, c)) for t, c in zip(self.tiles, self.cluster, strict=True))
        return rows, columns

    @cached_property
    def _walk(self) -> TileGrid:
        """The order of the bands."""
        raster = RASTERS[0] if self.order == "hilbert" else self.order
        return TileGrid(*self.shape, self.depth_tiles, raster, self.group, self.splits)

    @property
    def places(self) -> int:
        """Places of the order, some of which may hold no tile."""
        if self.order == "hilbert":
            return self.shape[0] * self.shape[1]
        return self._walk.mapping.num_workers

    @property
    def work(self) -> int:
        """Places times parts of the depth that clusters take one by one, of all products."""
        return self.batches * self._work_of_one

    @property
    def _work_of_one(self) -> int:
        return self.places * (1 if self.together else self.splits)

    @property
    def clusters(self) -> int:
        """Clusters at work."""
        return min(self.work, max(1, self.slots // self.cluster_size))

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return self.clusters * self.cluster_size

    def table(self, name: str) -> list[str]:
        """The declarations that :meth:`emit` relies on."""
        if self.order != "hilbert":
            return []
        rows, columns = hilbert(*self.shape)
        numbers = ", ".join(map(str, (rows << 16 | columns).tolist()))
        return [f"__device__ const u32 {name}[] = {{{numbers}}};"]

    def emit(self, table: str, body: Callable[[], Sequence[str]]) -> list[str]:
        """CUDA lines that run ``body`` for each tile of this block, in turn.

        They declare ``work``, ``tile_row``, ``tile_column``, ``first_step``, ``steps``, where the
        depth is shared, ``part``, and of a batch ``number``, which counts the products; they read
        ``rank``, the block's number in its cluster.
        """

        def lines(tile: tuple[Index, ...]) -> list[str]:
            coordinates = [
                f"const int tile_{name} = {self._tile(axis, tile[axis])};"
                for axis, name in enumerate(("row", "column"))
            ]
            return [*coordinates, *self._depth(), *body()]

        head, place = [], "work"
        if self.batches > 1:
            place, one = "within", self._work_of_one
            head = [f"const int number = work / {one};", f"const int within = work % {one};"]
        if self.together:
            head.append("const int part = (int)rank;")
        elif self.splits > 1:
            head += [
                f"const int part = {place} / {self.places};",
                f"const int place = {place} % {self.places};",
            ]
            place = "place"
        first = "(int)blockIdx.x" + ("" if self.cluster_size == 1 else f" / {self.cluster_size}")
        turns = f"for (int work = {first}; work < {self.work}; work += {self.clusters}) {{"
        return [
            # a loop of one turn, which only its author knows of, costs registers
            *(["{", f"  const int work = {first};"] if self.together else [turns]),
            *(f"  {line}" for line in [*head, *self._at(place, table, lines)]),
            "}",
        ]

    def _at(
        self, place: str, table: str, lines: Callable[[tuple[Index, ...]], list[str]]
    ) -> list[str]:
        rows, columns = self.shape
        if self.order == "hilbert":
            tile = (index("(int)(packed >> 16)", rows), index("(int)(packed & 0xffff)", columns))
            return [f"const u32 packed = {table}[{place}];", *lines(tile)]
        return self._walk.mapping.emit(
            place, lines, extents=(rows, columns), integer="int", language="cuda"
        )

    def _tile(self, axis: int, number: Index) -> str:
        if self.cluster[axis] == 1:
            return number.text
        return f"{number * self.cluster[axis]} + (int)rank"

    def _depth(self) -> list[str]:
        if self.splits == 1:
            return ["const int first_step = 0;", f"const int steps = {self.depth_tiles};"]
        share = self._walk.depth_share
        return [
            f"const int first_step = part * {share};",
            f"const int rest = {self.depth_tiles} - first_step;",
            f"const int steps = rest < {share} ? rest : {share};",
        ]


def hilbert(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The points of a ``rows`` x ``columns`` grid as arrays of their coordinates, in the order in
    which the Hilbert curve of the enclosing square passes them (Hilbert 1891)."""
    row, column = (axis.ravel() for axis in np.indices((rows, columns)))
    distance = np.zeros(rows * columns, dtype=np.int64)
    x, y = column.copy(), row.copy()
    side = 1 << max(int(max(rows, columns) - 1).bit_length() - 1, 0)
    while side:
        right, up = (x & side) > 0, (y & side) > 0
        distance += side * side * ((3 * right) ^ up)
        # turn the quarter so that the curve enters and leaves where its neighbours expect it
        flip = right & ~up
        x, y = (
            np.where(flip, side - 1 - (x & (side - 1)), x),
            np.where(flip, side - 1 - (y & (side - 1)), y),
        )
        x, y = np.where(up, x, y), np.where(up, y, x)
        side //= 2
    order = np.argsort(distance, kind="stable")
    return row[order], column[order]
