"""The template of reductions along kept axes on a GPU: its decisions, rules and quantities.

``spaces.cuda.kept.code`` prints the kernel.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.kept.code import KeptCode
from tilewright.spaces.cuda.kept.rules import LEAST_FOR_PARTS, kept_rules
from tilewright.spaces.cuda.kept.served import why_not_kept
from tilewright.spaces.cuda.kept.sizes import KeptSizes
from tilewright.spaces.cuda.kept.traffic import kept_quantities
from tilewright.spaces.cuda.rows.reducers import helpers
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.kept.view import cached_kept, loops_across
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


def splits(target: CudaTarget) -> tuple[int, ...]:
    """Return how many blocks may share a task.

    Powers of two, and numbers that leave no multiprocessor idle.
    """
    shares = (target.multiprocessors * 2**n // 8 for n in range(8))
    return tuple(sorted({*(2**n for n in range(11)), *(n for n in shares if n > 1)}))


class CudaKept(CudaTemplate):
    """The template of pooling, depthwise convolutions, sums of columns.

    Each lane has a reduction of its own.
    """

    name: ClassVar[str] = "kept"
    version: ClassVar[int] = 5
    refuses_products: ClassVar[str] = "it is a product of matrices, which tiles serve better"
    recomputes: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.view = cached_kept(self.workload.program)
        self.decisions = self._decisions()
        self.rules = kept_rules(self.view, self.cuda)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are several reductions or none, a condition, or elements that lie apart.
        """
        return why_not_kept(workload)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.kept.traffic``."""
        return kept_quantities(self.workload, self.view, self.cuda, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        sizes = KeptSizes(self.view, schedule.values)
        return KeptCode(sizes, self.arguments, self.entry(schedule)).kernel(
            scalar_math.prelude({*scalar_math.ALWAYS, *self.workload.functions}) + helpers("float")
        )

    def _decisions(self) -> tuple[Decision, ...]:
        view = self.view
        several = len(view.kept) > 1
        parts = bool(view.taps) and view.taps[0].extent >= LEAST_FOR_PARTS
        return (
            Decision("vector", (1, 2, 4, 8)),
            Decision("coarsened_axis", loops_across(view)),
            Decision("coarsening", (1, 2, 3, 4, 6, 7, 8) if several else (1,)),
            Decision("unroll", tuple(range(len(view.taps) + 1))),
            Decision("prefetch", (1, 2, 4, 8)),
            Decision("threads", (64, 128, 256, 512)),
            Decision("reduction_threads", (1, 2, 4, 8, 16, 32) if parts else (1,)),
            Decision("splits", splits(self.cuda) if parts else (1,)),
            Decision("stores", ("cached", "stream")),
        )
