"""The CUDA template of states that are carried along steps: each from the one before.

Decisions:

- ``row_threads``: threads that share the points of inner axes of a column; they join sums by
  exchanges between lanes.
- ``warps``: those of a block, each of which has its own columns.
- ``vector``: columns of a thread.
- ``steps``, ``stages``: steps whose operands are copied at a time, and the places for so many.
- ``unroll``: steps that are written one after the other.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cuda.stepped.code import SteppedCode
from tilewright.spaces.cuda.stepped.rules import CHUNKS, stepped_rules
from tilewright.spaces.cuda.stepped.served import cached_walk, why_not_stepped
from tilewright.spaces.cuda.stepped.sizes import StepSizes
from tilewright.spaces.cuda.stepped.traffic import stepped_quantities
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class CudaStepped(CudaTemplate):
    """Delta rules, gates, and sums over prefixes whose terms separate, in float32."""

    name: ClassVar[str] = "stepped"
    version: ClassVar[int] = 2
    walks_steps: ClassVar[bool] = True
    refuses_products: ClassVar[str] = "it is a product of matrices; no stage of it reads itself"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.view = cached_walk(self.workload.program)
        self.copies = bool(self.sizes({}).staged)
        self.decisions = self._decisions()
        self.rules = stepped_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why there is no kernel: no state is carried, or threads would read elements of
        each other."""
        return why_not_stepped(workload)

    @property
    def functions(self) -> frozenset[str]:
        """The functions of the steps."""
        return self.view.program.functions

    def sizes(self, columns: Any) -> StepSizes:
        """Return the tiles of schedules: of one, or of columns of many."""
        return StepSizes(self.view, columns)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.stepped.traffic``."""
        return stepped_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        return SteppedCode(
            self.sizes(schedule.values), self.arguments, self.entry(schedule)
        ).kernel()

    def _decisions(self) -> tuple[Decision, ...]:
        points = self.sizes({}).most_points > 1
        return (
            Decision("row_threads", (1, 2, 4, 8, 16, 32) if points else (1,)),
            Decision("warps", (1, 2, 4, 8)),
            Decision("vector", (1, 2, 4)),
            Decision("steps", CHUNKS if self.copies else CHUNKS[:1]),
            Decision("stages", (2, 3, 4) if self.copies else (2,)),
            Decision("unroll", (1, 2, 4)),
        )
