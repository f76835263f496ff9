"""What rules out a schedule of a SIMT contraction, and the sentence that says so.

Resources come first: threads, shared memory, registers. Then merit: tiles far larger than the
output, or threads without work. Then identity: decisions that say nothing keep one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from spaces.algebra.integers import round_up
from spaces.cuda.blocks.finish import sum_dtype
from spaces.cuda.blocks.implicit import Tiled
from spaces.cuda.blocks.rules import (
    BlockSizes,
    Worker,
    memory_rules,
    reuse_rule,
    step_rule,
    sums_rule,
    thread_rules,
)
from spaces.cuda.blocks.tile_grid import exchange_rule, grid_rules
from spaces.cuda.target import CudaTarget
from spaces.dtypes import dtype
from spaces.template import Decision, Rule

WARP = 32

SPREADS = (4, 8, 16)
"""Terms of a step among which the moves of tiles are spread."""

MOST_STEP = 4096
"""Multiply-adds of a step, all of which are written out."""


@dataclass(frozen=True)
class SimtSizes(BlockSizes):
    """Sizes of SIMT schedules."""

    @property
    def bytes(self) -> int:
        """Bytes of an element in shared memory."""
        return dtype(sum_dtype(self.product.workload)).bytes

    def vectors(self, c: Any) -> tuple[Any, Any]:
        """Rows and columns that a thread reads at once from shared memory."""
        widest = 16 // self.bytes
        return np.minimum(c["thread_rows"], widest), np.minimum(c["thread_columns"], widest)

    def lane_rows(self, c: Any) -> Any:
        """Lanes of a warp along rows."""
        return c["lane_rows"]

    def lane_columns(self, c: Any) -> Any:
        """Lanes of a warp along columns."""
        return WARP // c["lane_rows"]

    def block(self, c: Any) -> tuple[Any, Any]:
        """Rows and columns of a block's tile."""
        rows = c["warp_rows"] * c["lane_rows"] * c["thread_rows"]
        return rows, c["warp_columns"] * self.lane_columns(c) * c["thread_columns"]

    def shared_bytes(self, c: Any) -> Any:
        """Shared memory of a block: two stages of both tiles."""
        rows, columns = self.block(c)
        left = self._tile_bytes(rows, c["depth"], self.product.left_runs_deep)
        right = self._tile_bytes(columns, c["depth"], self.product.right_runs_deep)
        return 2 * (left + right)

    def _tile_bytes(self, width: Any, depth: Any, deep: bool) -> Any:
        row = width + deep * (16 // self.bytes)
        return round_up(((depth - 1) * row + width) * self.bytes, 128)

    def sums(self, c: Any) -> Any:
        """Registers of a thread's sums."""
        return c["thread_rows"] * c["thread_columns"] * (self.bytes // 4)

    def registers(self, c: Any) -> Any:
        """The least 32-bit registers that a thread can do with: sums, one term's elements, tiles
        in transit, and addresses. Calibrated on what NVRTC 13.5 needs not to spill."""
        words = self.bytes // 4
        fragments = (c["thread_rows"] + c["thread_columns"]) * words
        plain = self.product.left.element.bytes == 4
        addresses = 36 if plain else 48
        rows, columns = self.block(c)
        left, right = self.product.left, self.product.right
        # each of the smaller elements takes a register, for they are converted
        held = self.held(left, rows, c) + self.held(right, columns, c)
        held = held * max(left.element.bytes // 4, 1)
        tables = self.tables(left, rows, c) + self.tables(right, columns, c)
        return self.sums(c) + fragments + held + addresses + tables


TILE = ("lane_rows", "thread_rows", "thread_columns", "warp_rows", "warp_columns")


def simt_rules(
    product: Tiled, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """All rules of the SIMT template, cheapest first."""
    sizes = SimtSizes(product)
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
    """Steps whose instructions are not too many, and moves spread over no more than there is."""
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
            ("depth", "spread"),
            lambda c: c["spread"] <= c["depth"],
            lambda c: f"moves cannot be spread over {c['spread']} of {c['depth']} terms",
        ),
    )


def _tile_rules(sizes: SimtSizes) -> list[Rule]:
    """Tiles less than twice the output's size, judged from the first decision on.

    Where the output has few rows, lanes must go along columns, however few these are."""
    product = sizes.product
    tallest = 2 * product.rows
    fewest_lanes = WARP // min(WARP, 2 ** (product.rows - 1).bit_length())
    widest = 2 * max(product.columns, fewest_lanes)

    tall = ("lane_rows", "thread_rows", "warp_rows")
    wide = ("lane_rows", "thread_columns", "warp_columns")

    def rows(c: Any, names: Sequence[str] = tall) -> Any:
        return prod(c[name] for name in names)

    def columns(c: Any, names: Sequence[str] = wide) -> Any:
        return sizes.lane_columns(c) * prod(c[name] for name in names[1:])

    def height(names: Sequence[str]) -> Rule:
        return Rule(
            "tile_height",
            tuple(names),
            lambda c: rows(c, names) < tallest,
            lambda c: (
                f"a tile of {rows(c)} rows is twice as high as the product's {product.rows}, or "
                "higher"
            ),
        )

    def width(names: Sequence[str]) -> Rule:
        return Rule(
            "tile_width",
            tuple(names),
            lambda c: columns(c, names) < widest,
            lambda c: (
                f"a tile of {columns(c)} columns is twice as wide as the product's "
                f"{product.columns}, or wider"
            ),
        )

    return [
        *(height(tall[:n]) for n in (1, 2, 3)),
        *(width(wide[:n]) for n in (1, 2, 3)),
    ]
