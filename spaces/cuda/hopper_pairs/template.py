"""The template of two products that share a factor, and a map of both, on Hopper.

Half of a tile's columns are those of one product, half the same ones of the other: a thread has
both sums of an element in its registers, for columns are 8 apart in them
(``spaces.cuda.hopper.storing.store``). The kernel is that of ``spaces.cuda.hopper.code``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.hopper.split import WAYS
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.hopper_pairs.product import multiplied_pair_of
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Decision
from tilewright.spaces.workloads.workload import Workload

ALLOWED: dict[str, Any] = {
    "swap_ab": lambda value: not value,
    "block_n": lambda value: value % 32 == 0,
    "merge": lambda value: value == WAYS[0],
}
"""Tests of the values of Hopper's decisions.

Columns lie along n, halves of them are whole stores by stmatrix, and a thread that finishes an
element has both sums.
"""


class HopperPairs(Hopper):
    """``output[m, n] = map(sum_k left[m, k] * right[k, n], sum_k left[m, k] * twin[k, n])``."""

    name: ClassVar[str] = "hopper_pairs"
    version: ClassVar[int] = 1

    @classmethod
    def multiplied(cls, workload: Workload) -> Tiled | str:
        """Return both products as one; or why there are none, in words."""
        return multiplied_pair_of(workload)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such pair, or operands that TMA cannot load; else None."""
        reason = super().refuses_on(workload, cuda)
        if reason:
            return reason
        product = cls.multiplied(workload)
        assert not isinstance(product, str)
        if product.left.element.bytes != 2:
            return f"{product.left.name} is {product.left.dtype}; allowed: elements of 2 bytes"
        return None

    def choices(self) -> Sequence[Decision]:
        """Return the decisions of one product that leave both sums of an element in one thread."""
        return [_allowed(decision) for decision in super().choices()]


def _allowed(decision: Decision) -> Decision:
    keep = ALLOWED.get(decision.name, lambda value: True)
    return replace(decision, values=tuple(filter(keep, decision.values)))
