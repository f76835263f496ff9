"""A persistent grid: the order in which blocks walk over the output's tiles.

Each cluster takes every n-th place of the order, n being the number of clusters that run at a time,
so that tiles computed at the same time are near each other in the order and share operands in L2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.tile_grid import RASTERS, TileGrid
from tilewright.spaces.kernel import OpenGrid

ORDERS = (*RASTERS, "hilbert")
MOST_IN_TABLE = 1 << 14
"""The most places of a Hilbert order, which is written into the kernel as a table."""


@dataclass(frozen=True)
class PersistentGrid:
    """A grid of ``tiles`` along (rows, columns), taken by clusters of ``cluster`` tiles.

    Each tile has ``depth_tiles`` steps. ``order`` is one of :data:`ORDERS`, the first two of which
    go in bands of ``group`` tiles. ``splits`` clusters share the depth of a tile or, if
    ``together``, as many blocks of one cluster, each of which then takes one place only. The device
    holds ``slots`` blocks at a time. The ``batches`` products of a batch follow each other. If
    ``open_rows`` is given, calls give the number of rows, ``rows_each`` at a time, and a tile has
    so many.
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
    open_rows: int | None = None
    rows_each: int = 1

    @property
    def cluster_size(self) -> int:
        """Blocks per cluster."""
        return self.cluster[0] * self.cluster[1] * (self.splits if self.together else 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Clusters of tiles along rows and columns."""
        rows, columns = (int(ceil_div(t, c)) for t, c in zip(self.tiles, self.cluster, strict=True))
        return rows, columns

    @cached_property
    def _walk(self) -> TileGrid:
        """The order in bands."""
        raster = RASTERS[0] if self.order == "hilbert" else self.order
        high = self.open_rows and self.open_rows * self.cluster[0]
        grid = TileGrid(*self.shape, self.depth_tiles, raster, self.group, self.splits)
        return replace(grid, open_rows=high, rows_each=self.rows_each)

    @property
    def open_grid(self) -> OpenGrid | None:
        """The dependence of the launch on the rows of a call."""
        walk = self._walk.open_walk
        if walk is None:
            return None
        size, shares = self.cluster_size, 1 if self.together else self.splits
        blocks = walk.places_each * shares * size
        return OpenGrid(walk.step, blocks, walk.rows_each, most=self.blocks)

    @property
    def places(self) -> int:
        """Places of the order; some may hold no tile."""
        if self.order == "hilbert":
            return self.shape[0] * self.shape[1]
        if walk := self._walk.open_walk:
            return walk.rows * walk.places_each
        return self._walk.mapping.num_workers

    @property
    def work(self) -> int:
        """Units of work that clusters take, of all products: places times shares of the depth."""
        return self.batches * self._work_of_one

    @property
    def _work_of_one(self) -> int:
        return self.places * (1 if self.together else self.splits)

    @property
    def clusters(self) -> int:
        """Clusters of the launch."""
        return min(self.work, max(1, self.slots // self.cluster_size))

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return self.clusters * self.cluster_size

    def table(self, name: str) -> list[str]:
        """Print the declaration of the table ``name`` that :meth:`emit` reads; empty if it needs
        none."""
        if self.order != "hilbert":
            return []
        rows, columns = hilbert(*self.shape)
        numbers = ", ".join(map(str, (rows << 16 | columns).tolist()))
        return [f"__device__ const u32 {name}[] = {{{numbers}}};"]

    def emit(self, table: str, body: Callable[[], Sequence[str]]) -> list[str]:
        """Print the loop that runs ``body`` for each tile of this block, in turn.

        It declares ``work``, ``tile_row``, ``tile_column``, ``first_step`` and ``steps``; ``part``,
        the number of the share, where the depth is shared; and ``number``, the number of the
        product, in a batch. It reads ``rank``, the block's number in its cluster.
        """

        def lines(tile: tuple[Index, ...]) -> list[str]:
            coordinates = [
                f"const int tile_{name} = {self._tile(axis, tile[axis])};"
                for axis, name in enumerate(("row", "column"))
            ]
            return [*coordinates, *self._walk.depth_lines("part"), *body()]

        head, place = [], "work"
        places, work, before = str(self.places), str(self.work), list[str]()
        if walk := self._walk.open_walk:
            places = "places"
            before = [*walk.count(), f"const int places = {walk.places};"]
            work = places if self.together or self.splits == 1 else f"places * {self.splits}"
        if self.batches > 1:
            place, one = "within", self._work_of_one
            head = [f"const int number = work / {one};", f"const int within = work % {one};"]
        if self.together:
            head.append("const int part = (int)rank;")
        elif self.splits > 1:
            head += [
                f"const int part = {place} / {places};",
                f"const int place = {place} % {places};",
            ]
            place = "place"
        first = "(int)blockIdx.x" + ("" if self.cluster_size == 1 else f" / {self.cluster_size}")
        turns = f"for (int work = {first}; work < {work}; work += {self.clusters}) {{"
        return [
            *before,
            # no loop: the compiler does not see that it has one turn, and it would cost registers
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
        if walk := self._walk.open_walk:
            return walk.emit(place, lines)
        return self._walk.mapping.emit(
            place, lines, extents=(rows, columns), integer="int", language="cuda"
        )

    def _tile(self, axis: int, number: Index) -> str:
        if self.cluster[axis] == 1:
            return number.text
        return f"{number * self.cluster[axis]} + (int)rank"


def hilbert(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of all points of a grid, in the order of a Hilbert curve.

    The curve is that of the enclosing square (Hilbert, Ueber die stetige Abbildung einer Linie auf
    ein Flaechenstueck, 1891); both arrays have ``rows * columns`` entries.
    """
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
