"""The base of all templates of CPU kernels."""

from __future__ import annotations

from abc import abstractmethod

from tilewright.spaces.cpu.abi import Code, c_kernel
from tilewright.spaces.cpu.kept.prelude import prelude as prelude_of_programs
from tilewright.spaces.cpu.prelude import prelude
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload


class CpuTemplate(Template):
    """A family of kernels in C: a text of its own for each schedule, behind a shared prelude."""

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CpuTarget)
        super().__init__(workload, target)
        self.cpu = target

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Say that the target is no CPU, or what :meth:`refuses_on` says."""
        if not isinstance(target, CpuTarget):
            return "needs a CPU target"
        return cls.refuses_on(workload, target)

    @classmethod
    @abstractmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why this template cannot serve the workload on a CPU; None if it can."""

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        return c_kernel(self.workload, self._prelude(), self._code(schedule, self.entry(schedule)))

    @abstractmethod
    def _code(self, schedule: Schedule, entry: str) -> Code:
        """Return the code of a schedule's kernel, whose function is called ``entry``."""

    def _prelude(self) -> str:
        """Return the C text that all kernels of the workload share: that of products by default, or
        of programs in float32."""
        if self.workload.matmul:
            return prelude(self.workload.matmul, self.cpu)
        return prelude_of_programs(self.functions, self.cpu, "float32")
