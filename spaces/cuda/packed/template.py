"""Products on a GPU whose factors are packed first: convolutions of images with channels first.

A map copies each factor whose neighbours in memory are none in the depth, so that TMA, or copies of
16 bytes, bring what an image's pixels have there side by side. The output is written as it lies.
Decisions are those of all kernels, numbered in the order of their launches.
"""

from __future__ import annotations

from typing import ClassVar

from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.packed.parts import parts
from tilewright.spaces.cuda.staged.template import CudaStaged
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.staged.partition import Part
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.computation import Computation


class CudaPacked(CudaStaged):
    """Copies of factors, and the product of them."""

    name: ClassVar[str] = "packed"
    version: ClassVar[int] = 1

    @classmethod
    def parts_of(cls, workload: Computation, target: Target) -> tuple[Part, ...] | str:
        """See :class:`~spaces.staged.template.Staged`; where TMA brings the factors as they lie,
        nothing is gained."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        if Hopper.refuses(workload, target) is None:
            return "TMA brings its factors as they lie"
        return parts(workload.program, target)
