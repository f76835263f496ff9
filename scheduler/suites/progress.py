"""Progress and result of a suite that is tuned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.measure.estimates import over_rival, rival_seconds
from tilewright.measure.records.measurement import NUMPY, Measurement
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.sections import value_of, values_of
from tilewright.scheduler.suites.suite import Member
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.progress import Stop
from tilewright.spaces.target import Target
from tilewright.spaces.validation.text import brief


@dataclass(frozen=True)
class TaskState:
    """The state of one workload of a suite.

    Counts are as in :class:`scheduler.tuning.progress.Progress`. ``best`` is the fastest right
    kernel; ``first_latency`` that of the first one that the run knew, in seconds. ``stopped`` is
    the reason why it gets no more trials, None as long as it does.
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
class SuiteStates:
    """The state of all workloads of a suite; ``value`` is that of the objective, None at first."""

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


@dataclass(frozen=True)
class SuiteProgress(SuiteStates):
    """The state of a suite's run after ``latest`` of the task at ``place`` became known.

    ``latest`` is None if candidates were asked for. ``phase`` is ``search`` or ``final``. Times are
    in seconds.
    """

    phase: str
    place: int
    latest: Measurement | None
    trials_allowed: int
    elapsed: float
    seconds_allowed: float


@dataclass(frozen=True)
class SuiteResult(SuiteStates):
    """The result of tuning a suite for ``seconds`` of wall time.

    ``history`` lists the trials, elapsed seconds and value of each improvement of the objective
    during the search. ``lacking`` says in what the machine failed, where it did in the end.
    During ``idle_seconds`` no candidate was built or run. The other seconds are those of
    :class:`scheduler.tuning.progress.TuningResult`.
    """

    target: Target
    stopped: Stop
    history: tuple[tuple[int, float, float], ...]
    seconds: float
    waiting_seconds: float
    search_seconds: float
    lowering_seconds: float
    database_seconds: float
    idle_seconds: float
    lacking: str

    def __repr__(self) -> str:
        how = f"{self.trials} trials in {self.seconds:.1f} s, ended by {self.stopped}"
        count = len(self.tasks)
        return brief(f"<SuiteResult of {count} workloads\n  {self.target.summary}\n  {how}>")

    @property
    def overhead(self) -> float:
        """Share of the wall time in which no candidate was built or run."""
        return self.idle_seconds / self.seconds


OnSuiteProgress = Callable[[SuiteProgress], None]
