"""CPU templates of programs that several kernels compute, each from the template that serves it
best."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from tilewright.spaces.cpu.abi import FLOAT, c_kernel
from tilewright.spaces.cpu.blocked.template import BlockedTemplate
from tilewright.spaces.cpu.chained.prelude import own
from tilewright.spaces.cpu.kept.prelude import prelude
from tilewright.spaces.cpu.loops.template import CpuLoops
from tilewright.spaces.cpu.ragged import prelude as ragged
from tilewright.spaces.cpu.scan import prelude as scans
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.thin.template import Thin
from tilewright.spaces.cpu.vectors import wide
from tilewright.spaces.cpu.windows.template import WindowsTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.program import Program
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.staged.arrays import places
from tilewright.spaces.staged.division import ON_CPU, cheaper, divided
from tilewright.spaces.staged.partition import (
    Part,
    Serving,
    first_of,
    partition,
    phased,
    simplified,
)
from tilewright.spaces.staged.template import Staged, WithDivision, WithLoops, WithPhases
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload


class StagedTemplate(Staged):
    """One function that calls the kernels of a program's parts, one after the other."""

    version: ClassVar[int] = 1

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CpuTarget)
        super().__init__(workload, target)
        self.cpu = target

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """See :class:`Staged`."""
        if not isinstance(target, CpuTarget):
            return "needs a CPU target"
        parts = _parts(workload.program, target)
        return f"no kernel for a part, {parts}" if isinstance(parts, str) else parts

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel that calls those of the parts."""
        from tilewright.spaces.cpu.staged.code import StagedCode

        kernels = self.kernels(schedule)
        code = StagedCode(
            entry=self.entry(schedule),
            arrays=[array.name for array in self.workload.operands],
            kernels=kernels,
            places=places(self.parts, kernels),
        )
        shared = prelude(self.functions, self.cpu, "float32") + own(self.cpu)
        preludes, lanes = [kernel.source.prelude for kernel in kernels], self.cpu.lanes(FLOAT)
        shared += scans.shared(lanes, preludes) + wide.shared(lanes, preludes)
        shared += ragged.shared(self.cpu, preludes)
        return c_kernel(self.workload, shared, code)


class PhasedTemplate(WithPhases, StagedTemplate):
    """Kernels of the phases of one sum."""

    version: ClassVar[int] = 1

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """See :class:`Staged`."""
        if not isinstance(target, CpuTarget):
            return "needs a CPU target"
        return _phases(workload.program, target)


class DividedTemplate(WithDivision, StagedTemplate):
    """Kernels of parts, cut where that is predicted to cost least."""

    version: ClassVar[int] = 1

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """See :class:`Staged`."""
        if not isinstance(target, CpuTarget):
            return "needs a CPU target"
        first = _parts(workload.program, target)
        if not isinstance(first, str) and len(first) == 1:
            return first
        return cheaper(first, _divided(workload.program, target), ON_CPU)


class StagedLoops(WithLoops, StagedTemplate):
    """Kernels of parts, some of which are plain loops."""

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """See :class:`Staged`."""
        if not isinstance(target, CpuTarget):
            return "needs a CPU target"
        return _eased(workload.program, target)


@lru_cache(maxsize=64)
def _parts(program: Program, target: CpuTarget) -> tuple[Part, ...] | str:
    return partition(program, _serving(target), spare=CpuLoops)


@lru_cache(maxsize=64)
def _divided(program: Program, target: CpuTarget) -> tuple[Part, ...] | str:
    return divided(program, _serving(target), CpuLoops, ON_CPU)


@lru_cache(maxsize=64)
def _phases(program: Program, target: CpuTarget) -> tuple[Part, ...] | str:
    return phased(program, _serving(target), CpuLoops)


@lru_cache(maxsize=64)
def _eased(program: Program, target: CpuTarget) -> tuple[Part, ...] | str:
    return simplified(program, _serving(target), CpuLoops)


def _serving(target: CpuTarget) -> Serving:
    """Return the templates of parts. Parts with several outputs have those that they had in the
    first version of these templates."""
    from tilewright.spaces.cpu.templates import TEMPLATES  # which have these ones

    others = [t for t in TEMPLATES.values() if not issubclass(t, Staged) and not t.last_resort]
    first = first_of(others, target)
    blocked = (BlockedTemplate, Thin, WindowsTemplate)
    of_several = first_of([t for t in others if not issubclass(t, blocked)], target)

    def serving(workload: Workload) -> type[Template] | str:
        return (of_several if len(workload.outputs) > 1 else first)(workload)

    return serving
