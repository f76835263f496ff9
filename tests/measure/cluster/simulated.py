"""A made-up device: what a schedule does there is a pure function of it, and takes a fixed time.

Workers of a cluster get this file as a module of its own. A decision ``kills`` makes a kernel end
the worker that runs (or, as ``builder``, builds) it; ``faults`` raises in the worker's own code.
"""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import time
import zlib
from collections.abc import Sequence
from dataclasses import replace

from tilewright.measure.host.directories import cache_directory
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import (
    Candidate,
    ErrorKind,
    Job,
    Measurement,
    Place,
    Status,
)
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Call, Kernel, Source, arguments
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.target import Target
from tilewright.spaces.testing.targets import made_up_cpu

HOST_SERVICES = "simulated:Simulated"
QUICK_HOST_SERVICES = "simulated:Quick"
MIXED_HOST_SERVICES = "simulated:Mixed"
ENDLESS_HOST_SERVICES = "simulated:Endless"
TARGET = made_up_cpu()
WORK = workload("matmul", m=512, n=512, k=512)


def candidate(name: str, job: Job | None = None, **decisions: Value) -> Candidate:
    """A candidate with these decisions."""
    schedule = Schedule("simulated", (("name", name), *decisions.items()))
    call = Call("kernel", arguments(WORK.inputs, WORK.outputs))
    kernel = Kernel(Source("none", "", name), call)
    return Candidate(job or Job("test", WORK, TARGET), schedule, kernel)


def latency(schedule: Schedule) -> float:
    """Seconds of a call; 1 to 2 ms."""
    return 1e-3 * (1 + zlib.crc32(schedule.key.encode()) / 2**32)


class SimulatedBuilder:
    """Gives each candidate a binary at once, or none."""

    batch = 16

    def build(self, candidates: Sequence[Candidate]) -> list[Built]:
        """The schedule's text is the binary."""
        return [self._build(candidate) for candidate in candidates]

    def close(self) -> None:
        """Nothing is held."""

    def _build(self, candidate: Candidate) -> Built:
        values = candidate.schedule.values
        if values.get("kills") == "builder":
            os.kill(os.getpid(), signal.SIGKILL)
        if values.get("broken"):
            return Built(candidate, error_kind=ErrorKind.COMPILE, error_text="this is no C")
        return Built(candidate, candidate.schedule.key.encode(), 1e-3, toolchain="none 1.0")


class SimulatedRunner:
    """Sleeps for each candidate, then knows its latency."""

    def __init__(self, seconds: float, reference: float = 1e-4) -> None:
        self._seconds, self._reference = seconds, reference

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        """One after the other."""
        return [self._run(job, b) for b in built]

    def close(self) -> None:
        """Nothing is held."""

    def _run(self, job: Job, built: Built) -> Measurement:
        schedule, started = built.candidate.schedule, time.time()
        assert built.binary == schedule.key.encode()
        if schedule.values.get("kills") == "runner":
            os.kill(os.getpid(), signal.SIGKILL)
        if schedule.values.get("faults"):
            raise RuntimeError("the device is gone")
        time.sleep(self._seconds)
        return Measurement(
            schedule=schedule,
            status=Status.OK,
            score=latency(schedule),
            samples=(latency(schedule),),
            reference_samples=(self._reference,),
            clock="cpu",
            round=job.round,
            build_seconds=built.seconds,
            run_seconds=self._seconds,
            started_at=started,
            place=Place(platform.node(), "made up", built.toolchain),
        )


class Simulated:
    """The services of a host of two such devices, on which a candidate takes 20 ms."""

    seconds = 0.02

    def device(self, kind: str) -> Target:
        """Whatever is asked for."""
        return TARGET

    def domains(self) -> Sequence[tuple[tuple[int, ...], ...]]:
        """Two cores of one cache."""
        return (((0,), (1,)),)

    def nvrtc(self) -> str:
        """None."""
        return ""

    def confine(self, cpus: Sequence[int]) -> None:
        """A made-up CPU confines nobody."""

    def builder(self, target: Target, jobs: int) -> SimulatedBuilder:
        """See above."""
        return SimulatedBuilder()

    def runner(self, target: Target) -> SimulatedRunner:
        """See above."""
        return SimulatedRunner(self.seconds)


class Quick(Simulated):
    """The same, on which a candidate takes no time."""

    seconds = 0.0


class Endless(Simulated):
    """The same, on which no candidate ends."""

    seconds = 1e6


class Mixed(Quick):
    """The same, and where the node has a GPU, that is made up too."""

    def device(self, kind: str) -> Target:
        """Of either kind."""
        return gpu("a GPU") if kind == "cuda" else TARGET

    def nvrtc(self) -> str:
        """The one that such a GPU is built for by."""
        return gpu("a GPU").compiler_version


class Throttled(Simulated):
    """A host of two caches; on the second one's cores all takes twice as long after a while."""

    well = 64  # candidates

    def domains(self) -> Sequence[tuple[tuple[int, ...], ...]]:
        """Two cores of each cache."""
        return (((0,), (1,)), ((2,), (3,)))

    def confine(self, cpus: Sequence[int]) -> None:
        """Whether this is the second one."""
        self.tires = 2 in cpus

    def runner(self, target: Target) -> SimulatedRunner:
        """See above."""
        return TiringRunner(0.0, self.well) if self.tires else SimulatedRunner(0.0)


class TiringRunner(SimulatedRunner):
    """Takes twice as long after ``well`` candidates."""

    def __init__(self, seconds: float, well: int) -> None:
        super().__init__(seconds)
        self._well = well

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        """One after the other."""
        tired, self._well = self._well <= 0, self._well - len(built)
        return [_slowed(m) if tired else m for m in super().run(job, built)]


def _slowed(measured: Measurement) -> Measurement:
    samples, references = measured.samples, measured.reference_samples
    return replace(
        measured,
        score=2 * samples[0],
        samples=tuple(2 * s for s in samples),
        reference_samples=tuple(2 * s for s in references),
    )


class Gpus(Simulated):
    """The services of a node with GPUs of the model that its environment names, or none."""

    def device(self, kind: str) -> Target:
        """The GPU that this process was given."""
        if kind != "cuda":
            raise InputError("no CPU here is measured on")
        assert os.environ["CUDA_VISIBLE_DEVICES"].isdecimal()  # one, and told which
        return gpu(os.environ["SIMULATED_GPU"])

    def nvrtc(self) -> str:
        """That of all these GPUs."""
        return gpu("any").compiler_version

    def runner(self, target: Target) -> SimulatedRunner:
        """One that has the GPU for itself, or fails."""
        return GpuRunner(0.005)


class GpuRunner(SimulatedRunner):
    """Fails where somebody else uses its GPU."""

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        """One after the other."""
        name = f"{os.environ['SIMULATED_GPU']}-{os.environ['CUDA_VISIBLE_DEVICES']}"
        with open(cache_directory("gpus") / name, "w") as device:
            fcntl.flock(device, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return super().run(job, built)


def gpu(model: str) -> CudaTarget:
    """A made-up GPU."""
    return replace(cuda_target("sm_90a"), model=model, compiler_version="0.0")
