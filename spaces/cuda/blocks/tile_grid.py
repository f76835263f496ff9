"""The assignment of output tiles, and of parts of the depth, to blocks.

Blocks of neighbouring numbers run at about the same time, so the order in which they walk the tiles
decides what they find in L2. Extents are rounded up to whole tiles; the last ones may reach beyond
the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import TaskMapping, spatial
from tilewright.spaces.cuda.blocks.batch import number_lines, product_number, x_numbers
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.open_walk import OpenWalk
from tilewright.spaces.cuda.blocks.segments import drawn_row_tiles, row_tiles
from tilewright.spaces.cuda.target import MOST_BLOCKS
from tilewright.spaces.kernel import OpenGrid
from tilewright.spaces.numerics.adding import IN_ONE_OF_PRODUCTS
from tilewright.spaces.template import Decision, Rule

RASTERS = ("along_columns", "along_rows")
GROUPS = (1, 2, 4, 8, 16)
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
PART = 1 << 13
"""Terms of a part of a long sum, as far as :data:`SPLITS` has enough parts."""


@dataclass(frozen=True)
class TileGrid:
    """A grid of ``rows`` x ``columns`` tiles of ``depth_tiles`` steps each.

    Blocks walk ``raster`` (one of :data:`RASTERS`) in bands of ``group`` tiles, crossing the band
    first. ``splits`` blocks share the depth of a tile. Each of the ``batches`` products of a batch
    has as many tiles, see :mod:`spaces.cuda.blocks.batch`. If ``open_rows`` is
    given, calls give the number of rows, ``rows_each`` at a time, and a tile has so many.
    """

    rows: int
    columns: int
    depth_tiles: int
    raster: str = "along_columns"
    group: int = 1
    splits: int = 1
    batches: int = 1
    open_rows: int | None = None
    rows_each: int = 1

    @property
    def mapping(self) -> TaskMapping:
        """The mapping from blocks to tiles; tiles at or past (rows, columns) do not exist."""
        if self.raster == "along_columns":
            bands, height = _bands(self.rows, self.group)
            return spatial(bands, 1) * spatial(1, self.columns) * spatial(height, 1)
        bands, width = _bands(self.columns, self.group)
        return spatial(1, bands) * spatial(self.rows, 1) * spatial(1, width)

    @cached_property
    def open_walk(self) -> OpenWalk | None:
        """The order of tiles where calls give the number of rows."""
        if self.open_rows is None:
            return None
        along_rows = self.raster == "along_rows"
        _, band = _bands(self.columns if along_rows else self.rows, self.group)
        shape = self.rows, self.columns
        return OpenWalk(self.open_rows, *shape, band, along_rows, self.rows_each)

    @property
    def open_grid(self) -> OpenGrid | None:
        """The dependence of the launch on the rows of a call."""
        walk = self.open_walk
        return OpenGrid(walk.step, walk.places_each, self.rows_each) if walk else None

    @property
    def blocks(self) -> tuple[int, int, int]:
        """Extents of the launch."""
        if self.open_walk:
            return (self.rows * self.open_walk.places_each, self.splits, self.batches)
        tiles = self.mapping.num_workers
        if x_numbers(self.batches):
            return (tiles * self.batches, self.splits, 1)
        return (tiles, self.splits, self.batches)

    @property
    def number(self) -> list[str]:
        """Lines that come before all others that use the number of the block's product."""
        return number_lines(self.batches, self.mapping.num_workers)

    @property
    def tiles(self) -> int:
        """Tiles of all products."""
        return self.batches * self.rows * self.columns

    @property
    def tile(self) -> str:
        """C text of a tile's number among all."""
        row = "(i64)tile_row"
        if self.batches > 1:
            number = product_number(self.batches, "i64").text
            row = f"({number} * {self.rows} + tile_row)"
        return f"{row} * {self.columns} + tile_column"

    @property
    def depth_share(self) -> int:
        """Steps of one part of the depth; the last part may have fewer."""
        return int(ceil_div(self.depth_tiles, self.splits))

    def emit(self, body: Callable[[], Sequence[str]]) -> list[str]:
        """Print ``body`` behind declarations of this block's tile and part of the depth.

        They are ``tile_row``, ``tile_column``, ``first_step`` and ``steps``.
        """

        def lines(tile: tuple[Any, ...]) -> list[str]:
            row, column = tile
            return [
                f"const int tile_row = {row.text};",
                f"const int tile_column = {column.text};",
                *self.depth_lines("(int)blockIdx.y"),
                *body(),
            ]

        if walk := self.open_walk:
            return [*walk.count(), *walk.emit("(int)blockIdx.x", lines)]
        tiles = self.mapping.num_workers
        block = f"(blockIdx.x % {tiles})" if x_numbers(self.batches) else "blockIdx.x"
        return self.mapping.emit(
            block, lines, extents=(self.rows, self.columns), integer="int", language="cuda"
        )

    def depth_lines(self, part: str) -> list[str]:
        """Print the declarations of the steps of share number ``part`` (C text) of a depth."""
        if self.splits == 1:
            return ["const int first_step = 0;", f"const int steps = {self.depth_tiles};"]
        share = self.depth_share
        return [
            f"const int first_step = {part} * {share};",
            f"const int rest = {self.depth_tiles} - first_step;",
            f"const int steps = rest < {share} ? rest : {share};",
        ]


def tile_grid(
    product: Tiled, block_rows: int, block_columns: int, depth: int, values: Mapping[str, Any]
) -> TileGrid:
    """Return the grid of tiles of this size, with the decisions of :func:`grid_decisions`."""
    return TileGrid(
        int(row_tiles(product, block_rows)),
        int(ceil_div(product.columns, block_columns)),
        int(ceil_div(product.terms, depth)),
        str(values["raster"]),
        int(values["raster_group"]),
        int(values["splits"]),
        product.batches,
        block_rows if product.is_open else None,
        product.rows_each,
    )


def grid_decisions() -> tuple[Decision, ...]:
    """Return the decisions on the order of tiles, and on how many blocks share one."""
    return (
        Decision("splits", SPLITS),
        Decision("raster", RASTERS),
        Decision("raster_group", GROUPS),
    )


Tiles = Callable[[Any], tuple[Any, Any]]
"""A function from columns of decisions to tiles along rows and along columns."""


def grid_rules(
    product: Tiled,
    reads: Sequence[str],
    block: Callable[[Any], tuple[Any, Any]],
    multiprocessors: int,
) -> tuple[Rule, ...]:
    """Return rules on the grid.

    ``block`` gives the rows and columns of a tile from the columns of the decisions ``reads``; the
    depth of a step is the decision ``depth``.
    """

    def tiles(c: Any) -> tuple[Any, Any]:
        rows, columns = block(c)
        return drawn_row_tiles(product, rows), ceil_div(product.columns, columns)

    def count(c: Any) -> Any:
        rows, columns = tiles(c)
        return rows * columns * product.batches

    return (
        *launch_rules(product, reads, count),
        *_split_rules(product, reads, count, multiprocessors),
        *_order_rules(reads, tiles),
    )


def parts_needed(product: Tiled) -> int:
    """Return how many parts a long sum needs, so that accumulators of float32 add few terms.

    Accumulators of tensor cores, and of wider types, are as accurate as what they multiply.
    """
    dtypes = {product.left.dtype, product.right.dtype}
    if product.terms <= IN_ONE_OF_PRODUCTS or "float32" not in dtypes:
        return 1
    return next((n for n in SPLITS if n * PART >= product.terms), SPLITS[-1])


def _long_parts(terms: int, needed: int) -> Rule:
    return Rule(
        "long_parts",
        ("splits",),
        lambda c: c["splits"] >= needed,
        lambda c: (
            f"{c['splits']} parts of {terms} terms are too long for one accumulator; allowed: "
            f"{needed} parts or more"
        ),
    )


def why_too_long(product: Tiled) -> str | None:
    """Return why sums are too long, in words; None if they are not."""
    most = SPLITS[-1] * IN_ONE_OF_PRODUCTS
    if parts_needed(product) == 1 or product.terms <= most:
        return None
    return f"adds up at most {most} terms; there are {product.terms}"


def _split_rules(
    product: Tiled, reads: Sequence[str], count: Callable[[Any], Any], multiprocessors: int
) -> tuple[Rule, ...]:
    def steps(c: Any) -> Any:
        return ceil_div(product.terms, c["depth"])

    most, needed = 4 * multiprocessors, parts_needed(product)
    return (
        *([_long_parts(product.terms, needed)] if needed > 1 else []),
        Rule(
            "idle_parts",
            ("depth", "splits"),
            lambda c: (c["splits"] - 1) * ceil_div(steps(c), c["splits"]) < steps(c),
            lambda c: (
                f"{steps(c)} steps of {c['depth']} terms in {c['splits']} parts of "
                f"{ceil_div(steps(c), c['splits'])} leave a part without work"
            ),
        ),
        Rule(
            "needless_split",
            (*reads, "splits"),
            lambda c: (c["splits"] <= needed) | (count(c) * c["splits"] <= most),
            lambda c: (
                f"{count(c)} tiles in {c['splits']} parts make more than four blocks for each of "
                f"the {multiprocessors} multiprocessors; splitting the depth gains nothing"
            ),
        ),
    )


def _order_rules(reads: Sequence[str], tiles: Tiles) -> tuple[Rule, ...]:
    def crossed(c: Any) -> Any:
        rows, columns = tiles(c)
        along_columns = c["raster"] == "along_columns"
        return along_columns * rows + (1 - along_columns) * columns

    return (
        Rule(
            "needless_order",
            (*reads, "raster", "raster_group"),
            lambda c: (
                (np.minimum(*tiles(c)) > 1) | (c["raster"] == RASTERS[0]) & (c["raster_group"] == 1)
            ),
            lambda c: (
                f"{' x '.join(map(str, tiles(c)))} tiles have one order; "
                f"allowed: raster={RASTERS[0]}, raster_group=1"
            ),
        ),
        Rule(
            "distinct_group",
            (*reads, "raster", "raster_group"),
            lambda c: (c["raster_group"] == 1) | (c["raster_group"] < 2 * crossed(c)),
            lambda c: (
                f"bands of {c['raster_group']} tiles are no narrower than all {crossed(c)} tiles"
            ),
        ),
    )


def launch_rules(
    product: Tiled, reads: Sequence[str], tiles: Callable[[Any], Any]
) -> tuple[Rule, ...]:
    """Return rules on how many ``tiles`` all products may have, where x numbers them.

    ``tiles`` computes them from the decisions ``reads``.
    """
    if not x_numbers(product.batches):
        return ()
    most = MOST_BLOCKS // 2  # bands less than double the number of tiles
    return (
        Rule(
            "launchable",
            tuple(reads),
            lambda c: tiles(c) <= most,
            lambda c: f"{tiles(c)} tiles of all products; a launch may have {most}",
        ),
    )


def exchange_rule(usual: str = "store") -> Rule:
    """Return the rule by which ``merge`` is ``usual`` where no tile is shared."""
    return Rule(
        "needless_exchange",
        ("splits", "merge"),
        lambda c: (c["splits"] > 1) | (c["merge"] == usual),
        lambda c: f"blocks share no tile, so merge={c['merge']} says nothing; allowed: {usual}",
    )


def _bands(tiles: int, group: int) -> tuple[int, int]:
    """Return the number of bands and their width, which is as equal as can be."""
    bands = int(ceil_div(tiles, group))
    return bands, int(ceil_div(tiles, bands))
