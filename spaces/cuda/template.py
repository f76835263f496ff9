"""The base of all templates of CUDA kernels."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.kernel import Argument, arguments
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload


class CudaTemplate(Template):
    """A family of kernels in CUDA C++.

    It may need a ``feature`` of GPUs; ``needs`` is the sentence that says so.
    """

    feature: ClassVar[str] = ""
    needs: ClassVar[str] = "needs a CUDA target"

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CudaTarget)
        super().__init__(workload, target)
        self.cuda = target

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Return what the target lacks, or what :meth:`refuses_on` says; None if it can be
        served."""
        if not isinstance(target, CudaTarget) or (cls.feature and not target.has(cls.feature)):
            return cls.needs
        return cls.refuses_on(workload, target)

    @classmethod
    @abstractmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why this template cannot serve the workload on a GPU, in words; None if it can."""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arrays of the workload, as a kernel takes them."""
        return arguments(self.workload.inputs, self.workload.outputs)


class WarpgroupTemplate(CudaTemplate):
    """A family of kernels that multiply by warpgroups (``wgmma``)."""

    feature: ClassVar[str] = "wgmma"
    needs: ClassVar[str] = "needs a target with warpgroup matrix instructions, such as cuda:sm_90a"
