"""The status that a driver publishes in the cluster, and how others read it."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from tilewright.measure.records.fields import Fields
from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.records.measurement import Job, Result
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.canonical import canonical_json

RATE_SECONDS = 30.0  # interval over which candidates a second are counted
LOST_SECONDS = 30.0  # silence after which a driver is taken for lost


@dataclass(frozen=True)
class JobStatus:
    """One job: candidates that ``wait``, are ``building`` and ``running``, are ``done``."""

    id: str
    workload: str
    target: str
    waiting: int
    building: int
    running: int
    done: int
    failures: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerStatus:
    """One worker: what it is, and the job that it works for, empty if none.

    ``state`` is starting, idle, busy, resting (for it drifted or could not begin) or failed.
    ``done`` candidates in its present life.
    """

    role: str
    host: str
    device: str
    state: str
    job: str
    done: int
    why: str = ""


@dataclass(frozen=True)
class DriverStatus:
    """One driver: ``at`` when it said so (Unix time), candidates a second, its jobs and workers."""

    driver: str
    at: float
    rate: float
    jobs: tuple[JobStatus, ...]
    workers: tuple[WorkerStatus, ...]

    def to_text(self) -> str:
        """Write the status as the text that the cluster keeps."""
        return canonical_json(asdict(self))

    def is_lost(self, now: float) -> bool:
        """Tell whether the driver has been silent for too long."""
        return now - self.at > LOST_SECONDS


def read_status(text: str) -> DriverStatus:
    """Read a driver's status; :class:`InputError` if that is malformed."""
    fields = Fields(parse_json(text))
    status = DriverStatus(
        driver=fields.prose("driver"),
        at=fields.number("at"),
        rate=fields.number("rate"),
        jobs=tuple(_job(data) for data in _list(fields, "jobs")),
        workers=tuple(_worker(data) for data in _list(fields, "workers")),
    )
    fields.finish()
    return status


def readable(texts: Iterable[str]) -> list[DriverStatus]:
    """Return the statuses in texts, without malformed ones."""
    found = []
    for text in texts:
        with suppress(InputError):
            found.append(read_status(text))
    return found


def _list(fields: Fields, name: str) -> list[Any]:
    value = fields.take(name)
    if not isinstance(value, list):
        raise InputError(f"{name}={value!r:.80} is not allowed; allowed: a list")
    return value


def _job(data: object) -> JobStatus:
    fields = Fields(data)
    status = JobStatus(
        id=fields.prose("id"),
        workload=fields.prose("workload"),
        target=fields.prose("target"),
        waiting=fields.integer("waiting"),
        building=fields.integer("building"),
        running=fields.integer("running"),
        done=fields.integer("done"),
        failures=fields.description("failures"),
    )
    fields.finish()
    if not all(type(count) is int for count in status.failures.values()):
        raise InputError(f"failures={status.failures!r:.80} are no counts")
    return status


def _worker(data: object) -> WorkerStatus:
    fields = Fields(data)
    names = ("role", "host", "device", "state", "job", "why")
    texts = {name: fields.prose(name) for name in names}
    done = fields.integer("done")
    fields.finish()
    return WorkerStatus(**texts, done=done)


class Tally:
    """Counts of candidates' outcomes: by job, and how many lately."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self._done: Counter[str] = Counter()
        self._failures: dict[str, Counter[str]] = {}
        self._times: deque[tuple[float, int]] = deque()

    def expect(self, job: Job) -> None:
        """Count a job whose candidates will be reported."""
        self.jobs[job.id] = job

    def note(self, results: Sequence[Result], now: float) -> None:
        """Count new results."""
        if results:
            self._times.append((now, len(results)))
        for result in results:
            id, kind = result.candidate.job.id, result.measurement.error_kind
            self._done[id] += 1
            if kind is not None:
                self._failures.setdefault(id, Counter())[str(kind)] += 1

    def forget(self, job: Job) -> None:
        """Forget the counts of a job."""
        self.jobs.pop(job.id, None)
        self._done.pop(job.id, None)
        self._failures.pop(job.id, None)

    def done(self, id: str) -> int:
        """Return the candidates of a job that are known."""
        return self._done[id]

    def failures(self, id: str) -> dict[str, int]:
        """Count a job's failures by kind."""
        return dict(self._failures.get(id, {}))

    def rate(self, now: float | None = None) -> float:
        """Candidates a second, lately."""
        now = time.time() if now is None else now
        while self._times and self._times[0][0] < now - RATE_SECONDS:
            self._times.popleft()
        if not self._times:
            return 0.0
        span = max(1.0, min(RATE_SECONDS, now - self._times[0][0]))
        return sum(count for _, count in self._times) / span
