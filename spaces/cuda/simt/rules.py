"""Rules of the SIMT template, and the sentences that say why a schedule is refused.

Threads come first. Then rules on merit: tiles far larger than the output, long steps, threads
without work. Resources and the grid come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

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
from tilewright.spaces.cuda.simt.sizes import SimtSizes
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.rules.early import below
from tilewright.spaces.template import Decision, Rule

SPREADS = (4, 8, 16)
"""Terms of a step among which the moves of tiles are spread."""

MOST_STEP = 4096
"""The most multiply-adds of a step, all of which are unrolled."""


TILE = ("lane_rows", "thread_rows", "thread_columns", "warp_rows", "warp_columns")


def simt_rules(
    sizes: SimtSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the SIMT template, cheapest first."""
    product = sizes.product
    return (
        *thread_rules(sizes, target),
        *_tile_rules(sizes),
        step_rule(product, decisions),
        *_step_rules(),
        reuse_rule(product, target, ("thread_rows", "thread_columns"), Worker("thread", 1, 16)),
        sums_rule(("thread_rows", "thread_columns"), sizes.sums, target),
        *memory_rules(sizes, target, decisions, TILE, ("depth",)),
        *grid_rules(product, TILE, sizes.block, target.multiprocessors),
        exchange_rule(),
    )


def _step_rules() -> tuple[Rule, ...]:
    """Return rules by which a step's instructions are not too many, and its terms enough.

    Moves are spread over no more terms than there are.
    """
    return (
        Rule(
            "step_length",
            ("thread_rows", "thread_columns", "depth"),
            lambda c: c["thread_rows"] * c["thread_columns"] * c["depth"] <= MOST_STEP,
            lambda c: (
                f"a step of {c['depth']} terms of {c['thread_rows']} x {c['thread_columns']} sums "
                f"is more than {MOST_STEP} multiply-adds to write out"
            ),
        ),
        Rule(
            "idle_spread",
            ("depth", "copy_spread"),
            lambda c: c["copy_spread"] <= c["depth"],
            lambda c: f"moves cannot be spread over {c['copy_spread']} of {c['depth']} terms",
        ),
    )


def _tile_rules(sizes: SimtSizes) -> list[Rule]:
    """Return rules by which tiles are less than twice the output's size.

    They are judged from the first decision on. If the output has few rows, lanes must go along
    columns, however few these are.
    """
    product = sizes.product
    most = most_rows(product)
    tallest = 2 * most
    fewest_lanes = WARP // min(WARP, 2 ** (most - 1).bit_length())
    widest = 2 * max(product.columns, fewest_lanes)

    tall = ("lane_rows", "thread_rows", "warp_rows")
    wide = ("lane_rows", "thread_columns", "warp_columns")

    def rows(c: Any, names: Sequence[str]) -> Any:
        return prod(c[name] for name in names)

    def columns(c: Any, names: Sequence[str]) -> Any:
        return sizes.lane_columns(c) * prod(c[name] for name in names[1:])

    def high(c: Any, names: Sequence[str]) -> str:
        return f"a tile of {rows(c, tall)} rows is twice as high as the product's {most}, or higher"

    def broad(c: Any, names: Sequence[str]) -> str:
        return (
            f"a tile of {columns(c, wide)} columns is twice as wide as the product's "
            f"{product.columns}, or wider"
        )

    return [
        *below("tile_height", tall, rows, tallest, high),
        *below("tile_width", wide, columns, widest, broad),
    ]
