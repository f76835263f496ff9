"""What rules out ways of exchanging sums between the blocks that share a Hopper tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaces.cuda.blocks.tile_grid import exchange_rule
from spaces.cuda.hopper.sizes import HopperSizes
from spaces.cuda.hopper.split import WAYS
from spaces.cuda.hopper.store import MATRIX
from spaces.cuda.target import CudaTarget
from spaces.template import Rule

MOST_BLOCKS = 8
"""Blocks of a cluster that every Hopper can launch."""


def exchange_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """What the decision ``exchange`` asks of the others."""
    product = sizes.product

    def elsewhere(c: Any) -> Any:
        return c["exchange"] != "cluster"

    def unit(c: Any) -> Any:
        """Columns that a thread sends, or stages, at a time; see ``hopper_split`` and
        ``hopper_store``."""
        return np.where((c["staging"] > 0) & (product.output.element.bytes == 2), MATRIX, 8)

    def blocks(c: Any) -> Any:
        return sizes.tiles(c) * c["splits"]

    return [
        exchange_rule(WAYS[0]),
        Rule(
            "cluster_parts",
            ("splits", "exchange"),
            lambda c: elsewhere(c) | (c["splits"] <= MOST_BLOCKS),
            lambda c: f"{c['splits']} parts are no cluster; it has up to {MOST_BLOCKS} blocks",
        ),
        Rule(
            "cluster_sums",
            ("schedule", "exchange"),
            lambda c: elsewhere(c) | (c["schedule"] == "cooperative"),
            lambda c: "only a tile that all warpgroups compute together is exchanged in a cluster",
        ),
        Rule(
            "one_cluster",
            ("cluster", "exchange"),
            lambda c: elsewhere(c) | (c["cluster"] == "1x1"),
            lambda c: "blocks that share a tile's depth load nothing in common; allowed: 1x1",
        ),
        Rule(
            "slices",
            ("block_n", "splits", "staging", "exchange"),
            lambda c: elsewhere(c) | (c["block_n"] % (c["splits"] * unit(c)) == 0),
            lambda c: (
                f"{c['block_n']} columns in {c['splits']} slices are no multiples of {unit(c)}, "
                "as their exchange and store ask for"
            ),
        ),
        Rule(
            "exchange_room",
            (
                *("block_m", "block_n", "swapped", "exchange", "consumers"),
                *("residency", "depth", "staging", "stages", "splits"),
            ),
            lambda c: elsewhere(c) | (sizes.shared_bytes(c) <= sizes.most_shared(c, target)),
            lambda c: (
                f"sums from other blocks take {sizes.exchange_bytes(c)} bytes of shared memory, "
                f"all of it {sizes.shared_bytes(c)}; {sizes.most_shared(c, target)} are allowed"
            ),
        ),
        Rule(
            "one_wave",
            ("block_m", "block_n", "swapped", "residency", "splits", "exchange"),
            lambda c: elsewhere(c) | (blocks(c) <= target.multiprocessors * c["residency"]),
            lambda c: (
                f"a block that exchanges sums in a cluster has one tile; {blocks(c)} blocks are "
                f"more than {target.multiprocessors} multiprocessors hold at a time with "
                f"residency={c['residency']}"
            ),
        ),
        Rule(
            "whole_bands",
            ("group", "exchange"),
            lambda c: elsewhere(c) | (c["group"] == 1),
            lambda c: (
                "bands may stick out of the output, but all blocks of a cluster that exchanges "
                "sums need a tile; allowed: group=1"
            ),
        ),
    ]
