"""What rules out a schedule of a contraction by ``mma.sync``, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaces.algebra.integers import round_up
from spaces.cuda.blocks.finish import Finish
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
from spaces.cuda.mma.accumulators import VECTOR, slab_bytes
from spaces.cuda.mma.fragments import FRAGMENT
from spaces.cuda.target import CudaTarget
from spaces.template import Decision, Rule
from spaces.workloads.array import Array

TILE = ("tile_rows", "tile_columns", "warp_rows", "warp_columns")


@dataclass(frozen=True)
class MmaSizes(BlockSizes):
    """Sizes of ``mma.sync`` schedules."""

    @property
    def bytes(self) -> int:
        """Bytes of an element of A and B."""
        return self.product.left.element.bytes

    def block(self, c: Any) -> tuple[Any, Any]:
        """Rows and columns of a block's tile."""
        return c["warp_rows"] * c["tile_rows"], c["warp_columns"] * c["tile_columns"]

    def shared_bytes(self, c: Any) -> Any:
        """Shared memory of a block: all stages of both tiles, or sums on their way out."""
        rows, columns = self.block(c)
        left = round_up(rows * c["depth"] * self.bytes, 128)
        ring = c["stages"] * (left + round_up(columns * c["depth"] * self.bytes, 128))
        slabs = c["warp_rows"] * c["warp_columns"] * slab_bytes(c["tile_columns"])
        return np.maximum(ring, (c["store"] == "shared") * slabs)

    def passes_registers(self, operand: Array) -> bool:
        """Whether ``cp.async`` cannot move an input's tiles: rows aligned to less than 4 bytes,
        or elements to be put crosswise of a size that ``ldmatrix`` does not transpose."""
        product = self.product
        deep = product.left_runs_deep if operand is product.left else product.right_runs_deep
        crosswise = self.bytes != 2 and not deep
        return crosswise or self.vector(operand) * self.bytes < 4

    def sums(self, c: Any) -> Any:
        """Registers of a thread's sums."""
        return c["tile_rows"] * c["tile_columns"] // 32

    def registers(self, c: Any) -> Any:
        """The least 32-bit registers that a thread can do with: sums, fragments of one step,
        tiles in transit, and addresses. Calibrated on what NVRTC 13.5 needs not to spill."""
        fragments = (c["tile_rows"] + c["tile_columns"]) // FRAGMENT * 4
        pieces = c["depth"] * self.bytes // FRAGMENT
        functions = 8 * self.product.is_fused
        total = self.sums(c) + fragments + pieces + functions + 32
        for operand, width in zip(
            (self.product.left, self.product.right), self.block(c), strict=True
        ):
            if self.passes_registers(operand):
                total = total + self.held(operand, width, c) + 16
            total = total + self.tables(operand, width, c)
        return total


def mma_rules(
    product: Tiled, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """All rules of the template, cheapest first."""
    sizes = MmaSizes(product)
    return (
        *thread_rules(sizes, target),
        *_tile_rules(sizes),
        step_rule(product, decisions),
        reuse_rule(product, target, ("tile_rows", "tile_columns"), Worker("warp", 32, 1024)),
        sums_rule(("tile_rows", "tile_columns"), sizes.sums, target),
        *memory_rules(sizes, target, decisions, TILE, ("store", "depth", "stages")),
        *grid_rules(product, TILE, sizes.block, target.multiprocessors),
        exchange_rule(),
        _store_rule(product),
    )


def _tile_rules(sizes: MmaSizes) -> list[Rule]:
    """Tiles less than twice the output's size, or one fragment high and wide."""

    def bounded(name: str, side: str, reads: tuple[str, ...], extent: int) -> Rule:
        def size(c: Any) -> Any:
            return c[reads[0]] * (c[reads[1]] if len(reads) > 1 else 1)

        return Rule(
            name,
            reads,
            lambda c: size(c) < 2 * max(extent, FRAGMENT),
            lambda c: (
                f"a tile of {size(c)} {side} is twice as large as the product's {extent}, or larger"
            ),
        )

    rows, columns = sizes.product.rows, sizes.product.columns
    return [
        bounded("tile_height", "rows", ("tile_rows",), rows),
        bounded("tile_height", "rows", ("tile_rows", "warp_rows"), rows),
        bounded("tile_width", "columns", ("tile_columns",), columns),
        bounded("tile_width", "columns", ("tile_columns", "warp_columns"), columns),
    ]


def _store_rule(product: Tiled) -> Rule:
    """Sums go by way of shared memory only to be stored in wider pieces."""
    width = Finish(product, FRAGMENT, FRAGMENT).vector(VECTOR)
    return Rule(
        "narrow_store",
        ("store",),
        lambda c: (c["store"] == "direct") | (width > 2),
        lambda c: (
            f"the output's rows of {product.columns} elements take stores of {width} at a time, "
            "for which shared memory is a detour"
        ),
    )
