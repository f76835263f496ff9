"""The templates of programs that take several kernels on a GPU."""

from __future__ import annotations

from typing import ClassVar

from tilewright.spaces.cuda.staged.code import StagedCode
from tilewright.spaces.cuda.staged.parts import (
    divided_parts,
    parts,
    parts_of_phases,
    parts_with_loops,
)
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.kernel import Kernel, arguments
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.staged.arrays import places
from tilewright.spaces.staged.partition import Part
from tilewright.spaces.staged.template import Staged, WithDivision, WithLoops, WithPhases
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


class CudaStaged(Staged):
    """The template of kernels that are launched in sequence."""

    version: ClassVar[int] = 2

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """Return the parts, see :class:`Staged`; or why there are none, in words."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        found = parts(workload.program, target)
        return f"no kernel for a part, {found}" if isinstance(found, str) else found

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernels as one, with all their launches."""
        kernels = self.kernels(schedule)
        return StagedCode(
            entry=self.entry(schedule),
            arguments=arguments(self.workload.inputs, self.workload.outputs),
            kernels=kernels,
            places=places(self.parts, kernels),
        ).kernel()


class CudaPhased(WithPhases, CudaStaged):
    """The template of one launch for each phase of a sum with a stride."""

    version: ClassVar[int] = 1

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """Return the phases, see :class:`Staged`; or why there are none, in words."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        return parts_of_phases(workload.program, target)


class CudaDivided(WithDivision, CudaStaged):
    """The template of kernels launched in sequence, cut where that is predicted to cost least."""

    version: ClassVar[int] = 1

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """Return the parts, see :class:`Staged`; or why there are none, in words."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        return divided_parts(workload.program, target)


class StagedLoops(WithLoops, CudaStaged):
    """The template of kernels launched in sequence, of which one is of plain loops."""

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """Return the parts, see :class:`Staged`; or why there are none, in words."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        return parts_with_loops(workload.program, target)
