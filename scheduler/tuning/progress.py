"""Progress and result of a tuning run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Any

from tilewright.measure.records.measurement import Measurement
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.workload import Workload


class Stop(StrEnum):
    """The reason why a run ended."""

    TRIALS = "trials"
    SECONDS = "seconds"
    PATIENCE = "patience"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"
    MACHINE = "machine"  # one attempt after another was lost
    WORKERS = "workers"  # none is left that measures


@dataclass(frozen=True)
class Progress:
    """The state of a run after ``latest`` became known (None if candidates were asked for).

    ``phase`` is ``search`` or ``final``. ``trials`` of ``trials_allowed`` are measured in this run,
    failures included. ``pending`` candidates are built, run, or wait for it. ``resumed`` schedules
    were known from the database. ``lost`` attempts, in which the machine failed, are no trials.
    ``failures`` counts by kind of error; ``best`` is the fastest right kernel so far. Times are in
    seconds.
    """

    phase: str
    trials: int
    trials_allowed: int
    resumed: int
    pending: int
    lost: int
    failures: Mapping[str, int]
    best: Measurement | None
    latest: Measurement | None
    elapsed: float
    seconds_allowed: float


@dataclass(frozen=True)
class Leader:
    """One of the best schedules of a run. ``share`` is its speed as a share of the best one's, by
    all comparisons of both; ``latency`` is the best one's divided by that, in seconds."""

    schedule: Schedule
    latency: float
    share: float

    def to_json(self) -> dict[str, Any]:
        """Return the leader as a JSON object."""
        told = {"latency_s": self.latency, "of_best": self.share}
        return {"schedule": self.schedule.to_json(), **told}


@dataclass(frozen=True)
class TuningResult:
    """The result of a tuning run, and how its ``seconds`` of wall time were spent.

    ``best`` is None if no kernel was right. ``history`` lists the trial, elapsed seconds and
    latency of each improvement. ``waiting_seconds`` were spent waiting for candidates to be built
    and run; search, lowering and database are the tuner's own work. Most of that is done while
    candidates are built and run; during ``idle_seconds`` of it none were. ``lacking`` names the
    machine's failure, if it failed in the end. ``leaders`` are the best few schedules, the best
    first.
    """

    workload: Workload
    target: Target
    best: Measurement | None
    stopped: Stop
    trials: int
    resumed: int
    lost: int
    lacking: str
    failures: Mapping[str, int]
    history: tuple[tuple[int, float, float], ...]
    seconds: float
    waiting_seconds: float
    search_seconds: float
    lowering_seconds: float
    database_seconds: float
    idle_seconds: float
    before_seconds: float = 0.0
    leaders: tuple[Leader, ...] = ()

    def __repr__(self) -> str:
        score = self.best.score if self.best else None
        time = "no right kernel" if score is None else f"best {score * 1e6:.4g} us"
        how = f"{time}, {self.trials} trials in {self.seconds:.1f} s, ended by {self.stopped}"
        return brief(f"<TuningResult {self.workload}\n  {self.target.summary}\n  {how}>")

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def own_seconds(self) -> float:
        """The tuner's own work, overlapped or not: all but waiting, and what was before it."""
        return self.seconds - self.waiting_seconds - self.before_seconds

    @property
    def overhead(self) -> float:
        """Share of the wall time in which no candidate was built or run."""
        return self.idle_seconds / self.seconds


class Ledger:
    """Books the wall time of a run on named accounts, in seconds.

    ``busy`` tells whether candidates are built or run meanwhile.
    """

    def __init__(
        self, began: float | None = None, busy: Callable[[], bool] = lambda: False
    ) -> None:
        now = time.monotonic()
        self._start = now if began is None else began
        self._busy = busy
        self.before = now - self._start
        """Seconds of the run that had passed when the ledger was opened."""
        self._spent: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._start

    def spent(self, name: str) -> float:
        """Return the seconds on account ``name``."""
        return self._spent.get(name, 0.0)

    @contextmanager
    def on(self, *names: str) -> Iterator[None]:
        """Book the time of the block on the accounts ``names``."""
        start = time.monotonic()
        try:
            yield
        finally:
            for name in names:
                self._spent[name] = self.spent(name) + time.monotonic() - start

    def work(self, name: str) -> AbstractContextManager[None]:
        """Book own work; also as ``idle`` if no candidate is built or run meanwhile."""
        return self.on(name) if self._busy() else self.on(name, "idle")
