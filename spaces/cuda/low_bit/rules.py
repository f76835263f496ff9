"""The rules for schedules of products with packed codes, each with the sentence that it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.spaces.cuda.blocks.rules import MOST_THREADS
from tilewright.spaces.cuda.low_bit.sizes import CodedSizes
from tilewright.spaces.cuda.residency import shared_memory
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.template import Decision, Rule


def coded_rules(
    product: CodedProduct,
    target: CudaTarget,
    decisions: tuple[Decision, ...],
) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    (chunks,) = (d.values for d in decisions if d.name == "block_depth")

    def sizes(c: Mapping[str, Any]) -> CodedSizes:
        return CodedSizes(product, c)

    whole = CodedSizes(product, {})
    tiles, deep = whole.tiles, whole.deep
    threads = min(MOST_THREADS, target.threads_per_block)
    return (
        Rule(
            "threads",
            ("warp_columns", "warp_depth"),
            lambda c: sizes(c).threads <= threads,
            lambda c: f"{sizes(c).threads} threads; allowed: {threads}",
        ),
        Rule(
            "idle_columns",
            ("warp_columns", "warp_tiles"),
            lambda c: (sizes(c).block_tiles < 2 * tiles) & (c["warp_tiles"] <= tiles),
            lambda c: f"a block has {sizes(c).block_tiles} tiles of columns; there are {tiles}",
        ),
        Rule(
            "idle_splits",
            ("splits",),
            lambda c: (c["splits"] - 1) * sizes(c).share < deep,
            lambda c: f"{c['splits']} blocks share {deep} tiles of the depth",
        ),
        Rule(
            "one_chunk",
            ("block_depth", "splits"),
            lambda c: (c["block_depth"] < 2 * sizes(c).share) | (c["block_depth"] == chunks[0]),
            lambda c: (
                f"activations of {c['block_depth']} tiles of the depth are twice the "
                f"{sizes(c).share} of a block, or more"
            ),
        ),
        Rule(
            "idle_warps",
            ("block_depth", "warp_depth", "in_flight", "splits"),
            lambda c: (
                (c["warp_depth"] * c["in_flight"] <= sizes(c).tiles_at_a_time)
                | (c["warp_depth"] * c["in_flight"] == 1)
            ),
            lambda c: (
                f"{c['warp_depth']} warps with {c['in_flight']} tiles each share "
                f"{sizes(c).tiles_at_a_time} tiles of the depth at a time"
            ),
        ),
        shared_memory(
            (
                *("tile_rows", "block_depth", "warp_columns", "warp_tiles", "warp_depth"),
                "splits",
            ),
            lambda c: sizes(c).shared_bytes,
            target,
        ),
        Rule(
            "registers",
            (
                *("tile_rows", "warp_tiles", "in_flight", "scales", "warp_columns"),
                "warp_depth",
            ),
            lambda c: sizes(c).registers <= _allowed(sizes(c), target),
            lambda c: (
                f"a thread needs about {sizes(c).registers} registers; "
                f"allowed: {_allowed(sizes(c), target)}"
            ),
        ),
    )


def _allowed(sizes: CodedSizes, target: CudaTarget) -> Any:
    """Return the registers that a thread of a block may have."""
    return np.minimum(
        target.registers_per_multiprocessor // sizes.threads, target.registers_per_thread
    )
