"""The template of products whose factors are packed first: convolutions with channels first.

A map copies each factor whose neighbours in memory are no neighbours in the depth, so that TMA, or
copies of 16 bytes, load contiguous terms. The output is written in its own layout. Decisions are
those of all kernels, numbered in the order of their launches.
"""

from __future__ import annotations

from typing import ClassVar

from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.packed.parts import parts
from tilewright.spaces.cuda.staged.template import CudaStaged
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.staged.partition import Part
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


class CudaPacked(CudaStaged):
    """The template of copies of factors, and then their product."""

    name: ClassVar[str] = "packed"
    version: ClassVar[int] = 1

    @classmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """Return the parts, see :class:`Staged`; or why there are none, in words.

        Where TMA can load the factors as they lie in memory, nothing is gained.
        """
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        if Hopper.refuses(workload, target) is None:
            return "TMA brings its factors as they lie"
        return parts(workload.program, target)
