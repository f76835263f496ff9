"""The state of the workloads that a run tunes: one, or those of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tilewright.measure.estimates import over_rival, rival_seconds
from tilewright.measure.records.measurement import NUMPY, Measurement
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.sections import value_of, values_of
from tilewright.scheduler.suites.suite import Member
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule


class Stop(StrEnum):
    """The reason why a run ended."""

    TRIALS = "trials"
    SECONDS = "seconds"
    PATIENCE = "patience"
    EXHAUSTED = "exhausted"
    CALLBACK = "callback"  # a callback had seen enough
    INTERRUPTED = "interrupted"
    MACHINE = "machine"  # one attempt after another was lost
    WORKERS = "workers"  # none is left that measures


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
class TaskState:
    """The state of one workload of a run.

    ``trials`` are measured in this run, failures included. ``pending`` candidates are built, run,
    or wait for it. ``resumed`` schedules were known from the database. ``lost`` attempts, in which
    the machine failed, are no trials. ``failures`` counts by kind of error. ``best`` is the fastest
    right kernel; ``first_latency`` that of the first one that the run knew, in seconds. ``stopped``
    is the reason why it gets no more trials, None as long as it does.
    """

    member: Member
    baseline: Baseline
    trials: int
    resumed: int
    pending: int
    lost: int
    failures: Mapping[str, int]
    best: Measurement | None
    first_latency: float | None
    stopped: Stop | None

    @property
    def latency(self) -> float | None:
        """The best latency, in seconds."""
        return self.best.score if self.best is not None else None

    @property
    def numpy_seconds(self) -> float | None:
        """The latency of NumPy's product: timed in turns with the best, or else once, before."""
        timed = rival_seconds(self.best, NUMPY) if self.best is not None else None
        return timed or self.baseline.numpy_seconds

    @property
    def over_numpy(self) -> float | None:
        """Speed-up over NumPy's product; None where that is not known, or is not to
        be believed (:func:`measure.estimates.over_rival`)."""
        if self.best is None or self.latency is None:
            return None
        if rival_seconds(self.best, NUMPY) is None:
            return self.baseline.over_numpy(self.latency)
        found = over_rival(self.best, NUMPY)
        return None if found is None else found.value

    @property
    def gain(self) -> float | None:
        """Speed-up of the best over the first."""
        if self.latency is None or self.first_latency is None:
            return None
        return self.first_latency / self.latency


@dataclass(frozen=True)
class States:
    """The state of all workloads of a run.

    ``title`` is that of the suite, empty where one workload is tuned by itself. ``value`` is that
    of the objective, None at first.
    """

    title: str
    objective: Objective
    tasks: tuple[TaskState, ...]

    @property
    def value(self) -> float | None:
        """See :func:`scheduler.suites.sections.value_of`."""
        return value_of(self.objective, self._members, self._latencies, self._library)

    @property
    def library_value(self) -> float | None:
        """The objective's value for the library."""
        return value_of(self.objective, self._members, self._library, self._library)

    @property
    def sections(self) -> Mapping[str, tuple[float | None, float | None]]:
        """The value of each section, and that for the library; empty for a plain suite."""
        ours = values_of(self.objective, self._members, self._latencies, self._library)
        theirs = values_of(self.objective, self._members, self._library, self._library)
        return {name: (value, theirs[name]) for name, value in ours.items() if name}

    @property
    def task(self) -> TaskState:
        """The state of the only workload; :class:`InputError` if there are several."""
        if len(self.tasks) > 1:
            raise InputError(f"{len(self.tasks)} workloads are tuned; allowed: tasks, one of each")
        return self.tasks[0]

    @property
    def best(self) -> Measurement | None:
        """The fastest right kernel of the only workload; None if there is none yet."""
        return self.task.best

    @property
    def trials(self) -> int:
        """The trials of all tasks."""
        return sum(task.trials for task in self.tasks)

    @property
    def resumed(self) -> int:
        """Schedules known before, of all tasks."""
        return sum(task.resumed for task in self.tasks)

    @property
    def pending(self) -> int:
        """Candidates of all tasks."""
        return sum(task.pending for task in self.tasks)

    @property
    def lost(self) -> int:
        """Attempts that the machine failed, of all tasks."""
        return sum(task.lost for task in self.tasks)

    @property
    def failures(self) -> Mapping[str, int]:
        """Count failures by kind, over all tasks."""
        return sum((Counter(task.failures) for task in self.tasks), Counter())

    @property
    def _members(self) -> Sequence[Member]:
        return [task.member for task in self.tasks]

    @property
    def _latencies(self) -> Sequence[float | None]:
        return [task.latency for task in self.tasks]

    @property
    def _library(self) -> Sequence[float | None]:
        return [task.numpy_seconds for task in self.tasks]
