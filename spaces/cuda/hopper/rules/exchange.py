"""Rules on how blocks that share a Hopper tile exchange their sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.cuda.blocks.tile_grid import exchange_rule
from tilewright.spaces.cuda.hopper.sizes import HopperSizes
from tilewright.spaces.cuda.hopper.split import WAYS
from tilewright.spaces.cuda.hopper.storing.filling import MATRIX
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.warpgroups import most_shared
from tilewright.spaces.template import Rule

CLUSTER_BLOCKS = 8
"""The most blocks of a cluster that every Hopper can launch."""


def exchange_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Return the rules that tie the decision ``merge`` to the others."""
    return [
        exchange_rule(WAYS[0]),
        *_cluster_rules(),
        *_room_rules(sizes, target),
        *_tile_rules(sizes, target),
    ]


def _elsewhere(c: Any) -> Any:
    """Return where sums are not exchanged within clusters."""
    return c["merge"] != "cluster"


def _cluster_rules() -> list[Rule]:
    """Return rules by which the blocks that share a tile's depth are a whole cluster."""
    return [
        Rule(
            "cluster_parts",
            ("splits", "merge"),
            lambda c: _elsewhere(c) | (c["splits"] <= CLUSTER_BLOCKS),
            lambda c: f"{c['splits']} parts are no cluster; it has up to {CLUSTER_BLOCKS} blocks",
        ),
        Rule(
            "cluster_sums",
            ("schedule", "merge"),
            lambda c: _elsewhere(c) | (c["schedule"] == "cooperative"),
            lambda c: "only a tile that all warpgroups compute together is exchanged in a cluster",
        ),
        Rule(
            "one_cluster",
            ("cluster", "merge"),
            lambda c: _elsewhere(c) | (c["cluster"] == "1x1"),
            lambda c: "blocks that share a tile's depth load nothing in common; allowed: 1x1",
        ),
    ]


def _room_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Return rules by which each block has a slice of the sums, and room for what others send."""

    def unit(c: Any) -> Any:
        """Return how many columns a thread sends, or stages, at a time.

        ``hopper.split`` sends 8 columns and ``hopper.storing`` stages 16 of 16 bits.
        """
        narrow = sizes.product.output.element.bytes == 2
        return np.where((c["store_buffers"] > 0) & narrow, MATRIX, 8)

    def allowed(c: Any) -> Any:
        return most_shared(target, c["blocks_per_sm"])

    return [
        Rule(
            "slices",
            ("block_n", "splits", "store_buffers", "merge"),
            lambda c: _elsewhere(c) | (c["block_n"] % (c["splits"] * unit(c)) == 0),
            lambda c: (
                f"{c['block_n']} columns in {c['splits']} slices are no multiples of {unit(c)}, "
                "as their exchange and store ask for"
            ),
        ),
        Rule(
            "exchange_room",
            (
                *("block_m", "block_n", "swap_ab", "merge", "consumers"),
                *("blocks_per_sm", "depth", "store_buffers", "stages", "splits"),
            ),
            lambda c: _elsewhere(c) | (sizes.shared_bytes(c) <= allowed(c)),
            lambda c: (
                f"sums from other blocks take {sizes.exchange_bytes(c)} bytes of shared memory, "
                f"all of it {sizes.shared_bytes(c)}; {allowed(c)} are allowed"
            ),
        ),
    ]


def _tile_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Return rules by which each cluster computes exactly one tile."""

    def blocks(c: Any) -> Any:
        return sizes.tiles(c) * c["splits"]

    return [
        Rule(
            "one_wave",
            ("block_m", "block_n", "swap_ab", "blocks_per_sm", "splits", "merge"),
            lambda c: _elsewhere(c) | (blocks(c) <= target.multiprocessors * c["blocks_per_sm"]),
            lambda c: (
                f"a block that exchanges sums in a cluster has one tile; {blocks(c)} blocks are "
                f"more than {target.multiprocessors} multiprocessors hold at a time with "
                f"blocks_per_sm={c['blocks_per_sm']}"
            ),
        ),
        Rule(
            "whole_bands",
            ("raster_group", "merge"),
            lambda c: _elsewhere(c) | (c["raster_group"] == 1),
            lambda c: (
                "bands may stick out of the output, but all blocks of a cluster that exchanges "
                "sums need a tile; allowed: raster_group=1"
            ),
        ),
    ]
