"""The template of sums over pairs of rows and keys, along both, by ``mma.sync``.

Gradients of attention are such sums. Those along the rows are given by one kernel, in which keys
stay in a block while rows pass, and those along the keys by another one, in which rows stay. Both
compute the scores that they need. Sums stay in registers, so nothing is added in memory and results
are the same in every run.

Decisions, each for either kernel (``key_`` where keys stay, ``row_`` where rows stay):

- ``warps`` of a block, and ``fragments`` of sixteen points of each that stay.
- ``tile``: points that pass at a time; ``stages`` of the ring of such tiles.
- ``blocks_per_sm``: blocks on a multiprocessor at a time, which limits registers.
- ``order`` of the blocks.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.cuda.pairwise.block import Block
from tilewright.spaces.cuda.pairwise.code import PairwiseCode
from tilewright.spaces.cuda.pairwise.passes import Pass, passes
from tilewright.spaces.cuda.pairwise.rules import of_pass, pass_rules, why_no_room
from tilewright.spaces.cuda.pairwise.served import kind_of, why_not_pairwise
from tilewright.spaces.cuda.pairwise.traffic import pairwise_quantities
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.chained.visited_tiles import VisitedTiles
from tilewright.spaces.derivation.pairwise.view import Pairwise, pairwise_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class CudaPairwise(CudaTemplate):
    """The template of a pass over all pairs for the sums along each side."""

    name: ClassVar[str] = "pairwise"
    version: ClassVar[int] = 2
    refuses_products: ClassVar[str] = (
        "it is a product of matrices; needs sums over pairs of rows and keys"
    )
    falls_apart: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = pairwise_of(self.workload.program)
        assert isinstance(found, Pairwise)
        self.pairwise = found
        self.passes = passes(found)
        self.visited_tiles = VisitedTiles(found)
        decided = [(of, self._decisions(of)) for of in self.passes]
        self.decisions = tuple(d for _, decisions in decided for d in decisions)
        rules = (pass_rules(of, self.cuda, decisions) for of, decisions in decided)
        self.rules = tuple(rule for each in rules for rule in each)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one."""
        return why_not_pairwise(workload, cuda) or cls(workload, cuda)._why_unfit()

    def _why_unfit(self) -> str | None:
        reasons = (why_no_room(of, self.cuda, self.decisions) for of in self.passes)
        return next((reason for reason in reasons if reason), None)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.pairwise.traffic``."""
        return pairwise_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        kind = kind_of(self.pairwise)
        assert kind is not None
        blocks = [Block(of, of_pass(of, schedule.values), kind) for of in self.passes]
        code = PairwiseCode(self.pairwise, blocks, self.entry(schedule))
        return code.kernel(self.arguments, frozenset(self.workload.functions))

    def _decisions(self, of: Pass) -> tuple[Decision, ...]:
        orders: tuple[str, ...] = ("tiles", "products")
        if self.pairwise.bounds:
            orders = (*orders, "tiles down", "products down")
        return (
            Decision(f"{of.name}_fragments", (1, 2, 4)),
            Decision(f"{of.name}_tile", (16, 32, 48, 64, 96, 128)),
            Decision(f"{of.name}_warps", (1, 2, 4, 8)),
            Decision(f"{of.name}_stages", (2, 3, 4)),
            Decision(f"{of.name}_blocks_per_sm", (1, 2, 3, 4, 6, 8)),
            Decision(f"{of.name}_order", orders),
        )
