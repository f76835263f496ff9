"""Call a GPU kernel as a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.measure.cuda.device import DeviceError
from tilewright.measure.cuda.nvrtc import is_built
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job, new_job_id
from tilewright.measure.registry import builder_for
from tilewright.scheduler.functions.arrays import ends_of, holds_indices
from tilewright.scheduler.functions.cuda_call import CudaCall
from tilewright.scheduler.functions.device_kernel import DeviceKernel
from tilewright.scheduler.functions.kernel_function import (
    Called,
    KernelFunction,
    RefusedKernelError,
)
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.calling import Calling, calling_of


class CudaFunction(KernelFunction):
    """A GPU kernel, compiled, that is called on arrays of a GPU.

    Example::

        c = function(a, b)  # by position: the workload's inputs, then the epilogue's
        function(a=a, b=b, out=c, stream=stream)  # by name, on a stream of yours

    Arrays are CUDA torch tensors, or anything with DLPack or ``__cuda_array_interface__``. The
    result goes to ``out``, or to a new tensor if the first input is one. Several outputs are a
    tuple, and ``out`` is a sequence or a mapping by name. Work is queued on ``stream`` (its
    handle), by default on torch's current stream, and may be captured in a CUDA graph. Nothing
    waits for it, unless indices are checked. Any number of threads may call at once.
    """

    __slots__ = ("__call__",)
    __call__: Callable[..., Any]
    checks = False

    def _make_ready(self) -> None:
        job = Job(new_job_id(), self.workload, self.target)
        cubin = _cubin(Candidate(job, self.schedule, self._kernel))
        indices = [n for n, o in enumerate(self.workload.inputs) if holds_indices(o)]
        self._call = CudaCall(
            DeviceKernel(cubin, self._kernel.call),
            self._kernel.call,
            calling_of(self.workload),
            indices if self.check_indices else (),
            ends_of(self.workload),
        )
        self.__call__ = self._call.__call__

    @classmethod
    def opened(cls, space: Space, schedule: Schedule, kernel: Kernel) -> Called:
        """Return the calls of an open ``kernel``, compiled, by their extent and arrays."""
        job = Job(new_job_id(), space.workload, space.target)
        device = DeviceKernel(_cubin(Candidate(job, schedule, kernel)), kernel.call)

        def at(extent: int, calling: Calling) -> Callable[..., Any]:
            return CudaCall(device, kernel.call, calling, extent=extent).__call__

        return at

    @classmethod
    def is_built(cls, kernel: Kernel, target: Target) -> bool:
        """Tell whether the kernel's cubin is there."""
        assert isinstance(target, CudaTarget)
        return is_built(kernel.source, target)


def _cubin(candidate: Candidate) -> bytes:
    builder = builder_for(candidate.job.target, jobs=1)
    try:
        (built,) = builder.build([candidate])
        if built.binary is None:
            lost = built.error_kind is ErrorKind.COMPILER_LOST
            kind = DeviceError if lost else RefusedKernelError
            raise kind(f"{candidate.schedule} does not build: {built.error_text}")
        return built.binary if isinstance(built.binary, bytes) else built.binary.read_bytes()
    finally:
        builder.close()
