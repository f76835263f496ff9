"""What is known of one attempt to build and run one schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from spaces.kernel import Kernel
from spaces.schedule import Schedule
from spaces.target import Target
from spaces.workload import Workload


class Status(StrEnum):
    """How an attempt ended. Only ``OK`` has a score that may win."""

    OK = "ok"
    SLOW = "slow"  # right, but so far behind the best that timing stopped after the first call
    ERROR = "error"


class ErrorKind(StrEnum):
    """Why an attempt failed."""

    COMPILE = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    REJECTED = "rejected"  # compiled, but refused for its resources (spills, shared memory)
    WRONG = "wrong_result"
    OUT_OF_BOUNDS = "out_of_bounds"
    CRASH = "crash"
    TIMEOUT = "timeout"
    MEMORY = "out_of_memory"
    DEVICE = "device_error"
    DEADLOCK = "deadlock"


@dataclass(frozen=True)
class Candidate:
    """One schedule on its way through building and running."""

    workload: Workload
    target: Target
    schedule: Schedule
    kernel: Kernel


@dataclass(frozen=True)
class Measurement:
    """The outcome of one candidate. Times are in seconds of one call.

    ``samples`` are the raw times, each already divided by the calls it spans; ``clock`` is
    ``cpu`` (thread CPU time), ``wall`` or ``device``. ``score`` is the latency that ranks (None
    unless the kernel ran); for ``SLOW`` it is an upper estimate from the one call made.
    ``reference_samples`` are those of the reference kernel in the same rounds: the drift alarm.
    ``round`` is ``search`` or ``final`` (measured again, interleaved with the other best).
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

    @property
    def ok(self) -> bool:
        """Whether the kernel is right and was timed to the end."""
        return self.status is Status.OK
