"""The record of one attempt to build and run one schedule."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


NUMPY = "numpy"
"""The name of NumPy's product among the rivals of a job."""


class Status(StrEnum):
    """The outcome of an attempt. Only ``OK`` has a score that may win."""

    OK = "ok"
    SLOW = "slow"  # right, but so far behind the best that timing stopped after the first call
    ERROR = "error"  # the schedule's own failure
    LOST = "lost"  # a failure of the machine, which says nothing of the schedule


class ErrorKind(StrEnum):
    """Says why an attempt failed."""

    COMPILE = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    REJECTED = "rejected"  # compiled, but refused for its resources (spills, shared memory)
    WRONG = "wrong_result"
    OUT_OF_BOUNDS = "out_of_bounds"
    CRASH = "crash"
    TIMEOUT = "timeout"
    MEMORY = "out_of_memory"
    DEVICE = "device_error"  # the machine could not begin to measure
    DEADLOCK = "deadlock"
    COMPILER_LOST = "compiler_lost"  # killed, or without disk or memory: it found no fault
    WORKER_LOST = "worker_lost"  # the measuring process died, with all candidates in it


@dataclass(frozen=True)
class Job:
    """The task that candidates are measured for. Each batch of them carries it.

    ``id`` tells jobs of one executor apart; batches of one job differ in the rest. ``best`` is the
    latency to beat that was known when the batch was sent (seconds); far slower candidates are cut
    short. ``final`` asks for the long interleaved comparison of the few best. ``thorough`` asks for
    a check on other tables of indices, too (:mod:`measure.drawing.tables`). ``rivals`` are
    libraries to be timed in turns with the candidates, where a runner can.
    """

    id: str
    workload: Workload
    target: Target
    best: float | None = None
    final: bool = False
    thorough: bool = False
    rivals: tuple[str, ...] = ()

    @property
    def round(self) -> str:
        """The round that its measurements belong to, see :class:`Measurement`."""
        return "final" if self.final else "search"


def new_job_id() -> str:
    """Return an id that no other job has."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Candidate:
    """One schedule of a job on its way through building and running."""

    job: Job
    schedule: Schedule
    kernel: Kernel

    @property
    def numerics(self) -> Numerics:
        """The promise about errors that the schedule's template keeps."""
        from tilewright.spaces.registry import numerics_of  # with NumPy

        return numerics_of(self.schedule.template, self.job.workload, self.job.target)


@dataclass(frozen=True)
class Place:
    """The place of a measurement: name of the host, device, and compiler with its version."""

    host: str = ""
    device: str = ""
    toolchain: str = ""


@dataclass(frozen=True)
class Measurement:
    """The outcome of one candidate. Times are in seconds of one call.

    ``samples`` are the raw times, each already divided by the calls it spans; ``clock`` is
    ``cpu`` (thread CPU time), ``wall`` or ``device``. ``score`` is the latency that ranks (None
    unless the kernel ran); for ``SLOW`` it is an upper estimate from the one call made.
    ``reference_samples`` are those of the reference kernel in the same rounds: the drift alarm.
    ``round`` is ``search`` or ``final`` (measured again, interleaved with the other best), or
    ``preliminary`` (the same, behind another one, to choose whom ``final`` compares).
    """

    schedule: Schedule
    status: Status
    score: float | None = None
    samples: tuple[float, ...] = ()
    reference_samples: tuple[float, ...] = ()
    clock: str = ""
    round: str = "search"
    error_kind: ErrorKind | None = None
    error_text: str = ""
    build_seconds: float = 0.0
    run_seconds: float = 0.0
    started_at: float = 0.0  # Unix time
    info: dict[str, Any] = field(default_factory=dict)  # registers, spills, ... as JSON values
    place: Place = Place()

    @property
    def ok(self) -> bool:
        """Tell whether the kernel is right and was timed to the end."""
        return self.status is Status.OK

    @property
    def lost(self) -> bool:
        """Tell whether the machine failed. The attempt is kept, but it is no trial: no model learns
        from it, and the schedule is tried again.
        """
        return self.status is Status.LOST


@dataclass(frozen=True)
class Result:
    """A candidate and what became of it."""

    candidate: Candidate
    measurement: Measurement
