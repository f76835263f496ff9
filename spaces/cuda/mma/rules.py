"""Rules of the ``mma.sync`` template, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.spaces.cuda.blocks.finish import Finish
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.rules import (
    Worker,
    memory_rules,
    reuse_rule,
    step_rule,
    sums_rule,
    thread_rules,
)
from tilewright.spaces.cuda.blocks.segments import most_rows
from tilewright.spaces.cuda.blocks.tile_grid import exchange_rule, grid_rules
from tilewright.spaces.cuda.mma.accumulators import VECTOR
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.mma.sizes import MmaSizes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.rules.early import below
from tilewright.spaces.template import Decision, Rule

TILE = ("tile_rows", "tile_columns", "warp_rows", "warp_columns")


def mma_rules(
    sizes: MmaSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template, cheapest first."""
    product = sizes.product
    return (
        *thread_rules(sizes, target),
        *tile_rules(product),
        step_rule(product, decisions),
        reuse_rule(product, target, ("tile_rows", "tile_columns"), Worker("warp", 32, 1024)),
        sums_rule(("tile_rows", "tile_columns"), sizes.sums, target),
        *memory_rules(sizes, target, decisions, TILE, ("store_path", "depth", "stages")),
        *grid_rules(product, TILE, sizes.block, target.multiprocessors),
        exchange_rule(),
        store_rule(product),
    )


def tile_rules(product: Tiled) -> list[Rule]:
    """Return rules by which tiles are less than twice the output's size, or one fragment."""

    def size(c: Any, names: Sequence[str]) -> Any:
        return prod(c[name] for name in names)

    def bounded(name: str, side: str, reads: tuple[str, ...], extent: int) -> list[Rule]:
        return below(
            name,
            reads,
            size,
            2 * max(extent, FRAGMENT),
            lambda c, names: (
                f"a tile of {size(c, names)} {side} is twice as large as the product's {extent}, "
                "or larger"
            ),
        )

    rows, columns = most_rows(product), product.columns
    return [
        *bounded("tile_height", "rows", ("tile_rows", "warp_rows"), rows),
        *bounded("tile_width", "columns", ("tile_columns", "warp_columns"), columns),
    ]


def store_rule(product: Tiled) -> Rule:
    """Return the rule by which sums go through shared memory only to be stored wider."""
    width = Finish(product, FRAGMENT, FRAGMENT).vector(VECTOR)
    return Rule(
        "narrow_store",
        ("store_path",),
        lambda c: (c["store_path"] == "direct") | (width > 2),
        lambda c: (
            f"the output's rows of {product.columns} elements take stores of {width} at a time, "
            "for which shared memory is a detour"
        ),
    )
