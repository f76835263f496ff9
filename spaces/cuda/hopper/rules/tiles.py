"""Rules on tiles, clusters and orders of tiles that do not suit the output."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.blocks.segments import most_rows
from tilewright.spaces.cuda.hopper.grid import MOST_IN_TABLE
from tilewright.spaces.cuda.hopper.sizes import TILE, HopperSizes
from tilewright.spaces.cuda.hopper.tile import BLOCK
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Rule

FEW_ROWS = 256
"""Rows of the output up to which it may pay to compute it transposed."""
MOST_TILES = 64
"""The most tiles per multiprocessor; more only if tiles of :data:`HELD` are more."""
HELD = {"block_m": 128, "block_n": 128}
"""A tile whose sums one warpgroup can hold, so that products of any size have this tile."""


def size_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Return rules by which tiles and clusters suit the output's size."""
    product = sizes.product
    fewest = sizes.tiles({**HELD, "swap_ab": False})
    most = max(MOST_TILES * target.multiprocessors, int(fewest))
    return [
        Rule(
            "swap",
            ("swap_ab",),
            lambda c: np.logical_not(c["swap_ab"]) | (most_rows(product) <= FEW_ROWS),
            lambda c: (
                f"computing {most_rows(product)} rows transposed gains nothing; "
                f"it may with up to {FEW_ROWS}"
            ),
        ),
        Rule(
            "tile_height",
            ("block_m", "swap_ab"),
            lambda c: c["block_m"] <= round_up(sizes.sides(c)[0], BLOCK),
            lambda c: f"a tile of {c['block_m']} is higher than the product's {sizes.sides(c)[0]}",
        ),
        Rule(
            "tile_width",
            ("block_n", "swap_ab"),
            lambda c: c["block_n"] <= round_up(sizes.sides(c)[1], 16),
            lambda c: f"a tile of {c['block_n']} is wider than the product's {sizes.sides(c)[1]}",
        ),
        Rule(
            "many_tiles",
            TILE,
            lambda c: sizes.tiles(c) <= most,
            lambda c: f"tiles so small are {sizes.tiles(c)}; larger ones are {most} or fewer",
        ),
        Rule(
            "cluster",
            (*TILE, "cluster"),
            lambda c: _cluster_fits(sizes, c),
            lambda c: f"the output has no {c['cluster']} tiles of {c['block_m']}x{c['block_n']}",
        ),
    ]


def needless_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Return rules against decisions that have no effect where there are few tiles."""

    def blocks(c: Any) -> Any:
        return sizes.tiles(c) * c["splits"]

    return [
        Rule(
            "needless_turns",
            (*TILE, "schedule", "blocks_per_sm", "splits"),
            lambda c: (
                (c["schedule"] == "cooperative")
                | (blocks(c) > c["blocks_per_sm"] * target.multiprocessors)
            ),
            lambda c: (
                "a block computes one tile, so its warpgroups have nothing to take turns with"
            ),
        ),
        Rule(
            "needless_residency",
            (*TILE, "blocks_per_sm", "splits"),
            lambda c: (c["blocks_per_sm"] == 1) | (blocks(c) > target.multiprocessors),
            lambda c: (
                f"{blocks(c)} blocks find a multiprocessor each, "
                f"so blocks_per_sm={c['blocks_per_sm']} says nothing; allowed: 1"
            ),
        ),
    ]


def raster_rules(sizes: HopperSizes) -> list[Rule]:
    """Return rules on the order of tiles."""
    return [
        Rule(
            "hilbert",
            (*TILE, "raster"),
            lambda c: (c["raster"] != "hilbert") | (sizes.tiles_of_one(c) <= MOST_IN_TABLE),
            lambda c: (
                f"a table of {sizes.tiles_of_one(c)} tiles is too long; {MOST_IN_TABLE} are allowed"
            ),
        ),
        Rule(
            "bands",
            ("raster", "raster_group"),
            lambda c: (c["raster"] != "hilbert") | (c["raster_group"] == 1),
            lambda c: "a Hilbert curve has no bands to group",
        ),
    ]


def _cluster_fits(sizes: HopperSizes, c: Any) -> Any:
    m, n = sizes.sides(c)
    cluster_m, cluster_n = sizes.cluster(c)
    return (ceil_div(m, c["block_m"]) >= cluster_m) & (ceil_div(n, c["block_n"]) >= cluster_n)
