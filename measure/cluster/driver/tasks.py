"""The pieces of each job: waiting, or assigned to a worker; each is in one place at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.measure.cluster.driver.ready_workers import Worker
from tilewright.measure.cluster.wire import Stored
from tilewright.measure.records.measurement import ErrorKind, Job, Measurement, Result, Status
from tilewright.measure.retrying import Attempt
from tilewright.spaces.target import Target


@dataclass(eq=False)
class Assignment:
    """A piece that a worker has. Nobody waits for the answer if it is not ``wanted``."""

    number: int
    worker: Worker
    attempt: Attempt
    overdue_at: float
    wanted: bool = True

    @property
    def job(self) -> Job:
        """The job that it is for."""
        return self.attempt.job

    @property
    def builds(self) -> bool:
        """Tell whether the task is to build; otherwise it is to run."""
        return self.worker.role == "build"


@dataclass(eq=False)
class Queue:
    """The waiting pieces of one job: pieces to build, pieces to run."""

    to_build: deque[Attempt] = field(default_factory=deque)
    to_run: deque[Attempt] = field(default_factory=deque)
    busy_workers: int = 0
    last_served: int = 0  # the number of its last task

    @property
    def target(self) -> Target:
        """The job's target, while something waits."""
        return (self.to_build or self.to_run)[0].job.target

    @property
    def turn(self) -> tuple[int, int]:
        """The job with the least of these has the next worker."""
        return self.busy_workers, self.last_served

    def __len__(self) -> int:
        return sum(len(piece.built) for piece in (*self.to_build, *self.to_run))


def failures(task: Assignment, outcomes: Sequence[Stored | Measurement]) -> list[Result]:
    """Return the results of a task that has no binary for some candidates."""
    pairs = zip(task.attempt.built, outcomes, strict=True)
    return [Result(b.candidate, m) for b, m in pairs if isinstance(m, Measurement)]


def losses(task: Assignment, kind: ErrorKind, why: str, now: float) -> list[Measurement]:
    """Return the measurements of a task that the machine failed in."""
    return [
        Measurement(
            schedule=b.candidate.schedule,
            status=Status.LOST,
            round=task.job.round,
            error_kind=kind,
            error_text=why,
            started_at=now,
        )
        for b in task.attempt.built
    ]
