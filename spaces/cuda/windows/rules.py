"""Rules of the windows template, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.cuda.blocks.rules import (
    Worker,
    memory_rules,
    reuse_rule,
    sums_rule,
    thread_rules,
)
from tilewright.spaces.cuda.mma.rules import TILE, store_rule, tile_rules
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.windows.sizes import WindowSizes
from tilewright.spaces.template import Decision, Rule


def window_rules(
    sizes: WindowSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template, cheapest first."""
    product = sizes.product
    return (
        *thread_rules(sizes, target),
        *tile_rules(product),
        reuse_rule(product, target, ("tile_rows", "tile_columns"), Worker("warp", 32, 1024)),
        sums_rule(("tile_rows", "tile_columns"), sizes.sums, target),
        *memory_rules(sizes, target, decisions, TILE, ("store_path", "coarsening")),
        _turns_rule(sizes, target),
        store_rule(product),
    )


def _turns_rule(sizes: WindowSizes, target: CudaTarget) -> Rule:
    """Return the rule by which blocks have several tiles only if all multiprocessors have some."""
    return Rule(
        "coarsening",
        (*TILE, "coarsening"),
        lambda c: (
            (c["coarsening"] == 1) | (sizes.blocks(c) * sizes.tiles(c)[1] >= target.multiprocessors)
        ),
        lambda c: (
            f"{c['coarsening']} tiles of a block leave {sizes.blocks(c) * sizes.tiles(c)[1]} "
            f"blocks for {target.multiprocessors} multiprocessors"
        ),
    )
