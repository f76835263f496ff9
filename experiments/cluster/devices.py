"""Hosts of so many simulated devices each, which workers of a cluster load in place of their own.

Workers get this file, and that of the simulated device, as modules of their own.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from simulated import Gpus, Simulated, SimulatedBuilder, SimulatedRunner, gpu

from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, Job, Measurement
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.target import Target

SLEEP = 0.05  # seconds that a candidate takes where it takes any
CORES = 20  # cores of a host with GPUs
COMPILING = 0.1, 0.5  # seconds of NVRTC for a kernel, least and most
SETTING_UP, TIMING = 0.1, 0.03  # seconds of a GPU for what runs together, and for each of it


class Devices(Simulated):
    """``count`` groups of two cores that share a cache each."""

    count, seconds = 1, 0.0

    def domains(self) -> Sequence[tuple[tuple[int, ...], ...]]:
        return tuple(((2 * i,), (2 * i + 1,)) for i in range(self.count))

    def runner(self, target) -> SimulatedRunner:
        return SimulatedRunner(self.seconds)


class Two(Devices):
    count = 2


class Four(Devices):
    count = 4


class Eight(Devices):
    count = 8


class SleepingOne(Devices):
    seconds = SLEEP


class SleepingTwo(Two):
    seconds = SLEEP


class Paced(Gpus):
    """GPUs that take about as long as real ones do, on a host that has cores for all compilers."""

    def device(self, kind: str) -> Target:
        """Return the GPU that this process was given, of the usual model."""
        return gpu(cuda_target("sm_90a").model)

    def domains(self) -> Sequence[tuple[tuple[int, ...], ...]]:
        """Return the cores for compilers."""
        return (tuple((core,) for core in range(CORES)),)

    def builder(self, target: Target, jobs: int) -> SimulatedBuilder:
        """Run as many compilers as there would be cores for."""
        return PacedBuilder(jobs)

    def runner(self, target: Target) -> SimulatedRunner:
        """Return one of the GPUs."""
        return PacedRunner(TIMING)


class PacedBuilder(SimulatedBuilder):
    """Sleeps while it would compile, ``jobs`` kernels at a time."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs)

    def build(self, candidates: Sequence[Candidate]) -> list[Built]:
        """Side by side."""
        return list(self._threads.map(self._compiled, candidates))

    def close(self) -> None:
        """No more is built."""
        self._threads.shutdown()

    def _compiled(self, candidate: Candidate) -> Built:
        least, most = COMPILING
        share = zlib.crc32(candidate.schedule.key.encode()) / 2**32
        seconds = least + (most - least) * share**2
        time.sleep(seconds)
        return replace(self._build(candidate), seconds=seconds)


class PacedRunner(SimulatedRunner):
    """Sleeps for what runs together, then for each of it."""

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        """Return one after the other."""
        time.sleep(SETTING_UP)
        each = SETTING_UP / max(1, len(built)) + TIMING
        return [replace(m, run_seconds=each) for m in super().run(job, built)]
