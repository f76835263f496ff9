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

from spaces.cuda.target import CudaTarget
from spaces.cuda.tile_copy import source_of
from spaces.cuda.tile_grid import exchange_rule, grid_rules
from spaces.cuda.traffic import BLOCK_SHARED
from spaces.dtypes import dtype
from spaces.integers import ceil_div, round_up
from spaces.product import Product
from spaces.template import Decision, Rule

WARP = 32


@dataclass(frozen=True)
class SimtSizes:
    """Extents and resources of schedules, from columns of their decisions."""

    product: Product

    @property
    def bytes(self) -> int:
        """Bytes of an element in shared memory."""
        return dtype(self.product.workload.accumulator).bytes

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

    def threads(self, c: Any) -> Any:
        """Threads of a block."""
        return c["warp_rows"] * c["warp_columns"] * WARP

    def shared_bytes(self, c: Any) -> Any:
        """Shared memory of a block: two stages of both tiles."""
        rows, columns = self.block(c)
        left = self._tile_bytes(rows, c["depth"], self.product.left_runs_deep)
        right = self._tile_bytes(columns, c["depth"], self.product.right_runs_deep)
        return 2 * (left + right)

    def _tile_bytes(self, width: Any, depth: Any, deep: bool) -> Any:
        row = width + deep * (16 // self.bytes)
        return round_up(((depth - 1) * row + width) * self.bytes, 128)

    @property
    def global_vector(self) -> int:
        """Elements of the narrower of both operands' widest global accesses, tiles aside."""
        return min(self._vector(self.product.left), self._vector(self.product.right))

    def _vector(self, operand: Any) -> int:
        fast = source_of(self.product, operand).shape[1]
        return int(np.gcd(16 // operand.element.bytes, fast))

    def held(self, c: Any) -> Any:
        """32-bit registers in which a thread holds the tiles that come next; each of the smaller
        elements takes one, for they are converted."""
        rows, columns = self.block(c)
        left = self._held(self.product.left, rows, c)
        return left + self._held(self.product.right, columns, c)

    def _held(self, operand: Any, width: Any, c: Any) -> Any:
        deep = source_of(self.product, operand).shape[1] == self.product.terms
        tile_fast, tile_slow = (c["depth"], width) if deep else (width, c["depth"])
        vector = np.gcd(self._vector(operand), tile_fast)
        fast = np.gcd(tile_fast // vector, self.threads(c))
        turns = ceil_div(tile_slow, self.threads(c) // fast) * (tile_fast // vector // fast)
        return turns * vector * max(operand.element.bytes // 4, 1)

    def registers(self, c: Any) -> Any:
        """The least 32-bit registers that a thread can do with: sums, one term's elements, tiles
        in transit, and addresses. Calibrated on what NVRTC 13.5 needs not to spill."""
        words = self.bytes // 4
        fragments = (c["thread_rows"] + c["thread_columns"]) * words
        plain = self.product.left.element.bytes == 4
        addresses = 36 if plain else 48
        return c["thread_rows"] * c["thread_columns"] * words + fragments + self.held(c) + addresses

    def register_limit(self, target: CudaTarget, c: Any) -> Any:
        """Registers that a thread may have, so that as many blocks fit as were asked for."""
        share = target.registers_per_multiprocessor // (self.threads(c) * c["residency"])
        return np.minimum(share // 8 * 8, target.registers_per_thread)


TILE = ("thread_rows", "thread_columns", "lane_rows", "warp_rows", "warp_columns")


def simt_rules(
    product: Product, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """All rules of the SIMT template, cheapest first."""
    sizes = SimtSizes(product)
    return (
        *_thread_rules(sizes, target),
        *_tile_rules(sizes),
        *_memory_rules(sizes, target),
        *grid_rules(product, TILE, sizes.block, target.multiprocessors),
        exchange_rule(),
    )


def _thread_rules(sizes: SimtSizes, target: CudaTarget) -> list[Rule]:
    most = min(target.threads_per_block, 512)
    return [
        Rule(
            "threads",
            ("warp_rows", "warp_columns"),
            lambda c: sizes.threads(c) <= most,
            lambda c: (
                f"{c['warp_rows']} times {c['warp_columns']} warps are {sizes.threads(c)} "
                f"threads; allowed: {most}"
            ),
        ),
        Rule(
            "resident_threads",
            ("warp_rows", "warp_columns", "residency"),
            lambda c: sizes.threads(c) * c["residency"] <= target.threads_per_multiprocessor,
            lambda c: (
                f"{c['residency']} blocks of {sizes.threads(c)} threads are more than the "
                f"{target.threads_per_multiprocessor} a multiprocessor holds"
            ),
        ),
    ]


def _tile_rules(sizes: SimtSizes) -> list[Rule]:
    """Tiles less than twice the output's size, judged from the first decision on.

    Where the output has few rows, lanes must go along columns, however few these are."""
    product = sizes.product
    tallest = 2 * product.rows
    fewest_lanes = WARP // min(WARP, 2 ** (product.rows - 1).bit_length())
    widest = 2 * max(product.columns, fewest_lanes)

    def height(names: Sequence[str]) -> Rule:
        return Rule(
            "tile_height",
            tuple(names),
            lambda c: prod(c[name] for name in names) < tallest,
            lambda c: (
                f"a tile of at least {prod(c[name] for name in names)} rows is twice as high as "
                f"the product's {product.rows}, or higher"
            ),
        )

    def width(names: Sequence[str]) -> Rule:
        def columns(c: Any) -> Any:
            lanes = sizes.lane_columns(c) if "lane_rows" in names else fewest_lanes
            return lanes * prod(c[name] for name in names if name != "lane_rows")

        return Rule(
            "tile_width",
            tuple(names),
            lambda c: columns(c) < widest,
            lambda c: (
                f"a tile of at least {columns(c)} columns is twice as wide as the product's "
                f"{product.columns}, or wider"
            ),
        )

    tall, wide = (
        ("thread_rows", "lane_rows", "warp_rows"),
        ("thread_columns", "lane_rows", "warp_columns"),
    )
    return [
        *(height(tall[:n]) for n in (1, 2, 3)),
        *(width(wide[:n]) for n in (1, 2, 3)),
        Rule(
            "step_depth",
            ("depth",),
            lambda c: (c["depth"] < 2 * product.terms) | (c["depth"] == 8),
            lambda c: (
                f"a step of {c['depth']} terms is at least twice the {product.terms} there are"
            ),
        ),
    ]


def _memory_rules(sizes: SimtSizes, target: CudaTarget) -> list[Rule]:
    return [
        Rule(
            "shared_memory",
            (*TILE, "depth"),
            lambda c: sizes.shared_bytes(c) <= target.shared_per_block,
            lambda c: (
                f"two stages of both tiles take {sizes.shared_bytes(c)} bytes of shared memory; "
                f"a block may have {target.shared_per_block}"
            ),
        ),
        Rule(
            "resident_shared_memory",
            (*TILE, "depth", "residency"),
            lambda c: (
                (sizes.shared_bytes(c) + BLOCK_SHARED) * c["residency"]
                <= target.shared_per_multiprocessor
            ),
            lambda c: (
                f"{c['residency']} blocks of {sizes.shared_bytes(c)} bytes of shared memory do "
                f"not fit the {target.shared_per_multiprocessor} of a multiprocessor"
            ),
        ),
        Rule(
            "registers",
            (*TILE, "depth", "residency"),
            lambda c: sizes.registers(c) <= sizes.register_limit(target, c),
            lambda c: (
                f"a thread needs about {sizes.registers(c)} registers; {c['residency']} blocks of "
                f"{sizes.threads(c)} threads leave it {sizes.register_limit(target, c)}"
            ),
        ),
    ]
