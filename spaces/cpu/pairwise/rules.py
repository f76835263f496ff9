"""The rules that refuse a schedule of a pairwise kernel, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.chained.rules import BLOCK_SHARE_OF_L2
from tilewright.spaces.cpu.pairwise.blocks import NAMES
from tilewright.spaces.cpu.sharing import idle_threads
from tilewright.spaces.cpu.tiles.decisions import whole_tile_rules
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.pairwise.template import PairwiseTemplate

MOST_KEYS = 512
"""The most keys of a tile."""


def pairwise_rules(template: PairwiseTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (
        *whole_tile_rules("score", template.cpu),
        *whole_tile_rules("sum", template.cpu),
        *_size_rules(template),
        *_worker_rules(template),
    )


def _size_rules(template: PairwiseTemplate) -> list[Rule]:
    lanes, room = template.lanes, BLOCK_SHARE_OF_L2 * template.cpu.l2_bytes
    widths = (each.width.extent for each in template.pairwise.sums)
    width = max(ceil_div(extent, lanes) for extent in widths)

    def size(c: Any) -> Any:
        sizes: dict[str, Any] = dict.fromkeys(NAMES, 1)
        return 4 * template.blocks({**sizes, "rows": c["rows"], "keys": c["keys"]}).near_floats

    return [
        Rule(
            "sum_width",
            ("sum_vectors",),
            lambda c: c["sum_vectors"] <= width,
            lambda c: f"a tile of {c['sum_vectors']} vectors is wider than the {width} of a row",
        ),
        Rule(
            "key_panels",
            ("keys", "score_vectors"),
            lambda c: c["keys"] % (c["score_vectors"] * lanes) == 0,
            lambda c: (
                f"{c['keys']} keys are no multiple of a panel of {c['score_vectors'] * lanes}"
            ),
        ),
        Rule(
            "block_size",
            ("rows", "keys"),
            lambda c: (size(c) <= room) | (_are_smallest(template, c)),
            lambda c: (
                f"{c['rows']} rows and {c['keys']} keys take {int(size(c))} bytes; allowed: "
                f"{int(room)}, so that they stay in L2"
            ),
        ),
    ]


def _are_smallest(template: PairwiseTemplate, c: Any) -> Any:
    """Tell whether a block and a tile are the smallest ones, which are always allowed."""
    first = {decision.name: decision.values[0] for decision in template.decisions}
    return np.equal(c["rows"], first["rows"]) & np.equal(c["keys"], first["keys"])


def _worker_rules(template: PairwiseTemplate) -> list[Rule]:
    threads, batches = template.cpu.threads, template.pairwise.batches
    keys = template.pairwise.key.extent
    if threads == 1:
        return [idle_threads(1, 1)]

    def tiles(c: Any) -> Any:
        return ceil_div(keys, c["keys"])

    return [
        idle_threads(
            threads, threads if max(batches, batches * keys // MOST_KEYS) >= threads else 1
        ),
        Rule(
            "split_keys",
            ("keys", "splits"),
            lambda c: (c["splits"] == 1) | (c["splits"] <= tiles(c)),
            lambda c: f"{c['splits']} parts share {tiles(c)} tiles of keys; some would have none",
        ),
        Rule(
            "product_share",
            ("workers", "splits"),
            lambda c: c["workers"] <= batches * c["splits"],
            lambda c: (
                f"{c['workers']} workers share {c['splits']} parts of {batches} products; "
                "some would have none"
            ),
        ),
    ]
