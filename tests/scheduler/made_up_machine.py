"""A made-up machine that times the schedules of the made-up landscape: quick, and never noisy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import ModuleType

from tilewright.measure.records.measurement import (
    Candidate,
    ErrorKind,
    Job,
    Measurement,
    Result,
    Status,
)
from tilewright.scheduler.testing.landscape import hills_latency
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target


class Clock:
    """Stands for :mod:`time` where time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1e-3)


class MadeUpMachine:
    """An executor that times candidates by formula, ``together`` at a time, in the order in which
    they came.

    Long unpacked panels crash. Candidates named in ``lucky`` look ten times faster in the
    search than they are. ``pause`` is what each candidate takes, in seconds of ``clock``.
    """

    batch = 16
    devices = 1
    ahead = 1
    together = 5

    def __init__(
        self,
        pause: float = 0.0,
        lucky: Sequence[Schedule] = (),
        clock: Clock | ModuleType | None = None,
    ) -> None:
        self.submitted: list[tuple[list[Schedule], bool]] = []
        self.jobs: list[Job] = []  # of the batches
        self.best: float | None = None  # that the last batch came with
        self.most_pending = 0
        self._lucky = frozenset(lucky)
        self._pause, self._clock = pause, clock or Clock()
        self._queue: list[Candidate] = []

    def submit(self, job: Job, candidates: Sequence[Candidate]) -> None:
        self.submitted.append(([c.schedule for c in candidates], job.final))
        self.jobs.append(job)
        self.best = job.best
        self._queue += candidates
        self.most_pending = max(self.most_pending, len(self._queue))

    def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
        done = [candidate for candidate in self._queue if _is_of(candidate, *jobs)]
        done = done[: self.together]
        taken = set(map(id, done))
        self._queue = [candidate for candidate in self._queue if id(candidate) not in taken]
        self._clock.sleep(self._pause * len(done))
        return [Result(candidate, self._measure(candidate)) for candidate in done]

    def pending(self, job: Job | None = None) -> int:
        return sum(job is None or _is_of(candidate, job) for candidate in self._queue)

    def cancel(self, job: Job) -> None:
        self._queue = [candidate for candidate in self._queue if not _is_of(candidate, job)]

    def drop(self, job: Job) -> None:
        self.cancel(job)

    def lacking(self, target: Target) -> str:
        return ""

    def close(self) -> None:
        self._queue.clear()

    @property
    def searched(self) -> list[Schedule]:
        return [s for schedules, final in self.submitted if not final for s in schedules]

    @property
    def compared(self) -> list[list[Schedule]]:
        """Of each comparison, the first one first."""
        return [schedules for schedules, final in self.submitted if final]

    def _measure(self, candidate: Candidate) -> Measurement:
        schedule, job, now = candidate.schedule, candidate.job, time.time()
        if schedule["pack"] == "none" and schedule["kc"] == 256:
            crash = ErrorKind.CRASH
            return Measurement(schedule, Status.ERROR, error_kind=crash, started_at=now)
        latency = hills_latency(schedule.values)
        if schedule in self._lucky and not job.final:
            latency /= 10
        return Measurement(
            schedule, Status.OK, latency, (latency,), round=job.round, started_at=now
        )


def _is_of(candidate: Candidate, *jobs: Job) -> bool:
    return not jobs or candidate.job.id in {job.id for job in jobs}
