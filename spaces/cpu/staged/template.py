"""The CPU template for programs that no kernel computes at once: several do, one after the other.

Its decisions are those of all these kernels' templates, numbered (``spaces.staged.lifted``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from spaces.cpu.abi import c_kernel
from spaces.cpu.chained.prelude import own
from spaces.cpu.kept.prelude import prelude
from spaces.cpu.staged.code import StagedCode
from spaces.cpu.target import CpuTarget
from spaces.kernel import Kernel
from spaces.language.program import Program
from spaces.schedule import Schedule
from spaces.staged import lifted
from spaces.staged.partition import Part, partition
from spaces.target import Target
from spaces.template import Columns, Template
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload


class StagedTemplate(Template):
    """Kernels of other templates, each of which reads what the ones before it have written."""

    name: ClassVar[str] = "staged"

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CpuTarget)
        assert isinstance(workload, Computation)
        super().__init__(workload, target)
        self.cpu = target
        found = _parts(workload.program, target)
        assert not isinstance(found, str)
        self.cut = found
        self.parts = [part.template(part.workload, target) for part in self.cut]
        self.decisions = lifted.decisions(self.parts)
        self.rules = lifted.rules(self.parts)

    @property
    def functions(self) -> frozenset[str]:
        """Those of its parts."""
        return frozenset[str]().union(*(part.functions for part in self.parts))

    @property
    def versioned(self) -> str:
        """With those of its parts, such as ``staged.1+rows.2+contraction.3``."""
        return "+".join([super().versioned, *(part.versioned for part in self.parts)])

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Why not: one kernel computes it, or no cut gives programs that kernels compute."""
        if not isinstance(target, CpuTarget):
            return "needs a CPU target"
        if not isinstance(workload, Computation):
            return "one kernel computes a product of matrices"
        parts = _parts(workload.program, target)
        if isinstance(parts, str):
            return f"no kernel for a part, {parts}"
        return "one kernel computes it" if len(parts) == 1 else None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Those of all parts together."""
        return lifted.quantities(self.parts, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """The kernels, and one that calls them."""
        each = zip(self.parts, lifted.schedules(self.parts, schedule), strict=True)
        kernels = [part.lower(decided) for part, decided in each]
        code = StagedCode(
            entry=self.entry(schedule),
            arrays=[array.name for array in self.workload.operands],
            kernels=kernels,
            named=[
                {array.name: part.named(array) for array in kernel.call.arrays}
                for part, kernel in zip(self.cut, kernels, strict=True)
            ],
        )
        shared = prelude(self.functions, self.cpu, "float32") + own(self.cpu)
        return c_kernel(self.workload, shared, code)


@lru_cache(maxsize=64)
def _parts(program: Program, target: CpuTarget) -> tuple[Part, ...] | str:
    from spaces.cpu.templates import TEMPLATES  # of which this one is the last

    return partition(program, target, [t for t in TEMPLATES if t is not StagedTemplate])
