"""The template of reductions over a product's columns on Hopper: cross-entropy, argmax, routing.

A linear layer with its cross-entropy, or the largest logit, are such chains. The kernel is that of
``spaces.cuda.hopper``, with its decisions, but no score is written: each tile leaves the states of
its columns for each row, and parts are merged by the derived corrections. A further decision,
``chunk``, is the number of columns that the chain takes at a time: with more it has less to do for
each row, but its values may find no registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.chained.served import why_not_chained
from tilewright.spaces.cuda.chained.traffic import chain_operations
from tilewright.spaces.cuda.hopper.split import WAYS
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.hopper.tile import BLOCK
from tilewright.spaces.cuda.hopper_reduced.code import ReducedCode, ReducedPlan
from tilewright.spaces.cuda.hopper_reduced.product import ReducedProduct, reduced_product_of
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.quantities import widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule
from tilewright.spaces.workloads.workload import Workload

ALLOWED: dict[str, tuple[Any, ...]] = {
    "swap_ab": (False,),
    "merge": WAYS[:1],
    "splits": (1,),
    "store_buffers": (0,),
}
"""Values of Hopper's decisions: rows lie along m, as chains have them, and no sums are stored."""


CHUNKS = (16, 32, 48, 64, 80, 96, 112, 128)


class HopperReduced(Hopper):
    """``results[m] = chain over n of sum_k left[m, k] * right[n, k]``."""

    name: ClassVar[str] = "hopper_reduced"
    version: ClassVar[int] = 5
    refuses_products: ClassVar[str] = (
        "it is a product of matrices; needs a chain of reductions over its columns"
    )

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.rules = (*self.rules, _chunk_rule())

    @classmethod
    def multiplied(cls, workload: Workload) -> Tiled | str:
        """Return the product of the scores; or why there is none, in words."""
        return reduced_product_of(workload)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such chain, or operands that TMA cannot load; else None."""
        reason = super().refuses_on(workload, cuda)
        if reason:
            return reason
        return why_not_chained(workload, cuda)

    def choices(self) -> Sequence[Decision]:
        """Return the decisions of a product that leave whole rows of a tile in a warpgroup."""
        found = [replace(d, values=ALLOWED.get(d.name, d.values)) for d in super().choices()]
        return [*found, Decision("chunk", CHUNKS)]

    def sectors_apart(self, c: Any) -> Any:
        """Return 0: no score is written."""
        return 0.0

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of the product, with parts in the place of scores, and the
        chain."""
        assert isinstance(self.product, ReducedProduct)
        found, c = super().quantities(columns), widened(columns)
        scores = found["epilogue_elements"]
        parts = ceil_div(self.product.columns, c["block_n"])
        left = 1.0 * ceil_div(self.product.rows, BLOCK) * BLOCK * parts
        least = float(self.workload.least_bytes)
        read = np.maximum(found["main_bytes"] - self.product.output.bytes, least)
        chain = scores * chain_operations(self.product.chained)
        return {
            **found,
            "flops": found["flops"] + chain,
            "instructions": found["instructions"] + chain / WARP,
            "main_bytes": read,
            "middle_bytes": read,
            "packing_bytes": found["packing_bytes"] + 2 * 16 * left * (parts > 1),
            "epilogue_elements": left,
        }

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Return why no axis can be open: parts of rows are merged."""
        return f"kernels of {self.name} have fixed extents"

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        plan = ReducedPlan(self.sizes, self.cuda, schedule.values)
        return ReducedCode(plan, self.entry(schedule), self.workload).kernel()


def _chunk_rule() -> Rule:
    return Rule(
        "whole_chunks",
        ("block_n", "chunk"),
        lambda c: c["block_n"] % c["chunk"] == 0,
        lambda c: f"{c['block_n']} columns of a tile are no whole number of {c['chunk']}",
    )
