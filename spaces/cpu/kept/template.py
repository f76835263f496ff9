"""Reductions along kept axes on a CPU: what can be decided, and what rules it.

The space is about reading as little as possible: outputs whose windows overlap are in one tile, in
registers, and loops are in an order in which what is read again is still near the core. See
``spaces.cpu.kept.code`` for the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import c_kernel
from tilewright.spaces.cpu.kept.prelude import prelude
from tilewright.spaces.cpu.kept.rules import kept_rules
from tilewright.spaces.cpu.kept.served import why_not_kept
from tilewright.spaces.cpu.kept.tiling import INNER, KEPT, MIDDLE, OUTER, REDUCED, Tiling
from tilewright.spaces.cpu.kept.traffic import kept_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.derivation.kept.view import cached_kept, loops_across
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Template
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload


class KeptTemplate(Template):
    """Pooling, depthwise convolutions, sums of columns: a reduction of its own in each lane."""

    name: ClassVar[str] = "kept"
    version: ClassVar[int] = 4
    recomputes: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CpuTarget)
        assert isinstance(workload, Computation)
        super().__init__(workload, target)
        self.cpu = target
        self.view = cached_kept(workload.program)
        self.element = dtype(workload.accumulator)
        self.lanes = target.lanes(self.element.bytes)
        self.decisions = self._decisions()
        self.rules = kept_rules(self)

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Why not: several reductions or none, a condition, or elements that lie apart."""
        if not isinstance(target, CpuTarget):
            return "needs a CPU target"
        return why_not_kept(workload, target)

    def tiling(self, values: Mapping[str, Any]) -> Tiling:
        """The tiles of one schedule or of columns of many."""
        return Tiling(self.view, values, self.lanes)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """See ``spaces.cpu.kept.traffic``."""
        return kept_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """The kernel; its entry is named after the workload and the schedule."""
        from tilewright.spaces.cpu.kept.code import KeptCode

        code = KeptCode(
            tiling=self.tiling(schedule.values),
            operands=self.workload.operands,
            element=self.element.name,
            streaming=bool(schedule.values["streaming_stores"]),
            entry=self.entry(schedule),
        )
        return c_kernel(self.workload, prelude(self.functions, self.cpu, self.element.name), code)

    def _decisions(self) -> tuple[Decision, ...]:
        view, threads = self.view, self.cpu.threads
        reduces = threads > 1 and bool(view.taps)
        streams = self.element.name == "float32"
        return (
            Decision("vectors", (1, 2, 3, 4, 6, 8)),
            Decision("coarsened_axis", loops_across(view)),
            Decision("coarsening", tuple(range(1, 9)) if len(view.kept) > 1 else (1,)),
            Decision("unroll", tuple(range(len(view.taps) + 1))),
            Decision("order", (INNER, MIDDLE, OUTER)),
            Decision("streaming_stores", (False, True) if streams else (False,)),
            Decision("parallel_over", (KEPT, REDUCED) if reduces else (KEPT,)),
            Decision("workers", tuple(range(1, threads + 1))),
        )
