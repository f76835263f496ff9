"""Rules of the chained template, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.cuda.chained.sizes import ChainedSizes
from tilewright.spaces.cuda.chains.chain import RESCALES
from tilewright.spaces.cuda.chains.splits.splitting import (
    CLUSTER,
    MERGES,
    cluster_rule,
    split_rules,
)
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, FRAGMENT_BYTES
from tilewright.spaces.cuda.residency import storage_rules
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.rules.early import judged_early
from tilewright.spaces.template import Decision, Rule

MOST_WARPS = 16
"""The most warps of all teams of a block."""


def chained_rules(
    sizes: ChainedSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    least = {decision.name: decision.values[0] for decision in decisions}
    tile = sizes.decided
    steps = [tile[: n + 1] for n in range(len(tile))]
    early = [
        rule
        for known in (*steps, (*tile, "stages"), (*tile, "stages", "blocks_per_sm"))
        for rule in judged_early(storage_rules(sizes, target), known, least)
    ]
    return (*_tile_rules(sizes), *early, *_split_rules(sizes, target), *_byte_rules(sizes))


def why_no_room(
    sizes: ChainedSizes, target: CudaTarget, decisions: Sequence[Decision], warps: int = 1
) -> str | None:
    """Return why even the smallest tiles of ``warps`` warps have no room; None if they have.

    All places of a block's rows of the left operand are tried.
    """
    first, *others = (
        {d.name: d.values[0] for d in decisions} | {"query_storage": value, "warps": warps}
        for value in decisions[0].values
    )
    rules = storage_rules(sizes, target)
    if any(all(rule.holds(c) for rule in rules) for c in (first, *others)):
        return None
    return next(rule.explain(first) for rule in rules if not rule.holds(first))


def _tile_rules(sizes: ChainedSizes) -> list[Rule]:
    rows, keys = sizes.chained.row_count, sizes.chained.key.extent
    return [
        Rule(
            "tile_height",
            ("row_fragments", "warps"),
            lambda c: (c["row_fragments"] * c["warps"] == 1) | (sizes.rows(c) < 2 * rows),
            lambda c: (
                f"a block of {sizes.rows(c)} rows is twice as high as the {rows} of a product"
            ),
        ),
        Rule(
            "tile_keys",
            ("keys",),
            lambda c: (c["keys"] == FRAGMENT) | (c["keys"] < 2 * keys),
            lambda c: f"a tile of {c['keys']} keys is twice the {keys} there are, or more",
        ),
        Rule(
            "warp_splits",
            ("warps", "warp_splits"),
            lambda c: c["warps"] * c["warp_splits"] <= MOST_WARPS,
            lambda c: (
                f"{c['warp_splits']} teams of {c['warps']} warps are "
                f"{c['warp_splits'] * c['warps']} warps; allowed: {MOST_WARPS}"
            ),
        ),
        Rule(
            "teams_filled",
            ("keys", "warp_splits"),
            lambda c: (c["warp_splits"] == 1) | ((c["warp_splits"] - 1) * c["keys"] < keys),
            lambda c: (
                f"{c['warp_splits']} tiles of {c['keys']} keys are more than {keys} keys fill"
            ),
        ),
        Rule(
            "stages_filled",
            (*sizes.step, "stages"),
            lambda c: (c["stages"] == 2) | (c["stages"] <= sizes.all_steps(c)),
            lambda c: (
                f"{c['stages']} stages are more than the {sizes.all_steps(c)} steps in which "
                f"{keys} keys come, {c['keys']} at a time"
            ),
        ),
    ]


def _byte_rules(sizes: ChainedSizes) -> list[Rule]:
    """Return rules for weights that may be float8."""
    first, *others = sizes.kinds.weights
    if not others:
        return []
    return [
        Rule(
            "whole_fragments",
            ("weight_dtype", "keys"),
            lambda c: (c["weight_dtype"] != first) | (c["keys"] % FRAGMENT_BYTES == 0),
            lambda c: f"{c['keys']} keys are no multiple of {FRAGMENT_BYTES}, which {first} takes",
        ),
        Rule(
            "late_range",
            ("weight_dtype", "rescale"),
            lambda c: (c["weight_dtype"] != first) | (c["rescale"] != RESCALES[-1]),
            lambda c: f"weights that are corrected {c['rescale']} may leave the range of {first}",
        ),
    ]


def _split_rules(sizes: ChainedSizes, target: CudaTarget) -> list[Rule]:
    keys, most = sizes.chained.key.extent, target.multiprocessors * 8
    return [
        *split_rules(keys, sizes.decided, sizes.blocks, most),
        Rule(
            "needless_merge",
            ("splits", "merge"),
            lambda c: (c["splits"] > 1) | (c["merge"] == MERGES[0]),
            lambda c: f"one part needs no merging by {c['merge']}",
        ),
        cluster_rule(),
        Rule(
            "cluster_memory",
            (*sizes.decided, "stages", "splits", "merge"),
            lambda c: (c["merge"] != CLUSTER) | (sizes.all_sent_bytes(c) <= sizes.shared_bytes(c)),
            lambda c: (
                f"parts of {sizes.all_sent_bytes(c)} bytes come to shared memory; the tiles of a "
                f"block take {sizes.shared_bytes(c)}"
            ),
        ),
    ]
