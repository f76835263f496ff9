"""Which builder and which runner serve a target."""

from __future__ import annotations

from measure.interfaces import Builder, Runner
from spaces.errors import InputError
from spaces.target import Target


def builder_for(target: Target, jobs: int) -> Builder:
    """A builder for the target that runs ``jobs`` compilations at a time."""
    if target.kind == "cpu":
        from measure.cpu.builder import CBuilder
        from spaces.cpu.target import CpuTarget

        assert isinstance(target, CpuTarget)
        return CBuilder(target, jobs)
    if target.kind == "cuda":
        from measure.cuda.nvrtc import NvrtcBuilder
        from spaces.cuda.target import CudaTarget

        assert isinstance(target, CudaTarget)
        return NvrtcBuilder(target, jobs)
    raise InputError(f"no builder for target {target.kind!r}; allowed: cpu, cuda")


def runner_for(target: Target, device: int = 0) -> Runner:
    """A runner for the target, which must be this machine: its GPU of number ``device``."""
    if target.kind == "cpu":
        from measure.cpu.runner import CRunner
        from spaces.cpu.target import CpuTarget

        assert isinstance(target, CpuTarget)
        return CRunner(target)
    if target.kind == "cuda":
        from measure.cuda.runner import CudaRunner
        from spaces.cuda.target import CudaTarget

        assert isinstance(target, CudaTarget)
        return CudaRunner(target, device=device)
    raise InputError(f"no runner for target {target.kind!r}; allowed: cpu, cuda")
