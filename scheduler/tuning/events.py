"""The events of a tuning run: one stream that terminals, JSON lines, logs and pages consume.

A run tells, in this order: :class:`Started`; :class:`Compared`, if rivals are measured;
:class:`Progress` each time something becomes known; and a :class:`TuningResult`. A workload by
itself is a suite of one. Each event is frozen and becomes one JSON object by ``to_json``, whose
``version`` rises when a key changes its meaning or goes. Further keys may come at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tilewright.measure.busy import why_busy
from tilewright.measure.estimates import latency, over_rival, rival_seconds
from tilewright.measure.records.measurement import NUMPY, Measurement
from tilewright.measure.records.ranking import SEARCH
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.states import Leader, States, Stop, TaskState
from tilewright.spaces.target import Target
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.workload import Workload

VERSION = 1


@dataclass(frozen=True)
class Started:
    """A run begins. ``title`` is that of the suite, empty where one workload is tuned by itself;
    ``session`` is the name that ``tilewright resume`` knows it by, if it has one. ``compares``
    tells that the rivals are measured first."""

    title: str
    members: tuple[Member, ...]
    target: Target
    session: str = ""
    compares: bool = True

    @classmethod
    def of(
        cls, what: Workload | Suite, target: Target, session: str = "", compares: bool = True
    ) -> Started:
        """Return the start of tuning a workload or a suite."""
        if isinstance(what, Suite):
            return cls(what.title, what.members, target, session, compares)
        return cls("", (Member(what),), target, session, compares)

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object."""
        return {
            **_head("start", self.target),
            **_alone(self.title, self.members),
            "target": self.target.to_json(),
            "session": self.session,
            "title": self.title,
            "tasks": [_member(member) for member in self.members],
        }


@dataclass(frozen=True)
class Compared:
    """It is known what each workload is compared with: a peak, a library."""

    target: Target
    baselines: tuple[Baseline, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object."""
        return {
            **_head("compared", self.target),
            "tasks": [
                {"peak_gflops": each.peak_gflops, "numpy_s": each.numpy_seconds}
                for each in self.baselines
            ],
        }


@dataclass(frozen=True)
class Progress(States):
    """The state of a run after ``latest`` of the task at ``place`` became known.

    ``latest`` is None if candidates were asked for. ``phase`` is ``search`` or ``final``.
    ``trials`` of ``trials_allowed`` are measured in this run, failures included. Times are in
    seconds.
    """

    target: Target
    phase: str
    place: int
    latest: Measurement | None
    trials_allowed: int
    elapsed: float
    seconds_allowed: float

    @property
    def event(self) -> str:
        """The kind of event: ``asked``, ``trial``, or of a comparison ``preliminary`` or
        ``final``."""
        if self.latest is None:
            return "asked"
        return "trial" if self.latest.round == SEARCH else self.latest.round

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object."""
        task, latest = self.tasks[self.place], self.latest
        told = {
            **_head(self.event, self.target),
            "task": self.place,
            "phase": self.phase,
            "trials": self.trials,
            "trials_allowed": self.trials_allowed,
            "pending": self.pending,
            "elapsed_s": self.elapsed,
        }
        if latest is None:
            return told
        return told | {
            "status": str(latest.status),
            "error_kind": None if latest.error_kind is None else str(latest.error_kind),
            "latency_s": latest.score,
            "schedule": latest.schedule.to_json(),
            "failures": dict(self.failures),
            "best": _rates(task.baseline, task.latency),
            "best_s": task.latency,
            "value": self.value,
        }


@dataclass(frozen=True)
class TuningResult(States):
    """The result of a tuning run, and how its ``seconds`` of wall time were spent.

    ``best`` is None if no kernel was right; of a suite each of ``tasks`` has its own. ``history``
    lists the trial, elapsed seconds and latency of each improvement, of a suite the value of its
    objective. ``waiting_seconds`` were spent waiting for candidates to be built and run; search,
    lowering and database are the tuner's own work. Most of that is done while candidates are built
    and run; during ``idle_seconds`` of it none were. ``lacking`` names the machine's failure, if it
    failed in the end. ``leaders`` are the best few schedules of the first workload, the best first.
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
    before_seconds: float = 0.0
    leaders: tuple[Leader, ...] = ()

    def __repr__(self) -> str:
        how = f"{self.trials} trials in {self.seconds:.1f} s, ended by {self.stopped}"
        if self.title:
            words = f"<SuiteResult of {len(self.tasks)} workloads"
        else:
            score = self.task.latency
            time = "no right kernel" if score is None else f"best {score * 1e6:.4g} us"
            words, how = f"<TuningResult {self.workload}", f"{time}, {how}"
        return brief(f"{words}\n  {self.target.summary}\n  {how}>")

    def _repr_html_(self) -> str:
        words = f"<pre>{escape(repr(self))}</pre>"
        if len(self.history) < 2:
            return words
        from tilewright.scheduler.report.small import improvements  # draws only where it is shown

        return words + improvements(self).svg()

    @property
    def workload(self) -> Workload:
        """The only workload; :class:`InputError` if there are several."""
        return self.task.member.workload

    @property
    def own_seconds(self) -> float:
        """The tuner's own work, overlapped or not: all but waiting, and what was before it."""
        return self.seconds - self.waiting_seconds - self.before_seconds

    @property
    def overhead(self) -> float:
        """Share of the wall time in which no candidate was built or run."""
        return self.idle_seconds / self.seconds

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object."""
        best = None if self.title else self.best
        alone = {
            **_alone(self.title, [task.member for task in self.tasks]),
            "schedule": None if best is None else best.schedule.to_json(),
            "best": None if best is None else _found(self.task, best),
            "leaders": [leader.to_json() for leader in self.leaders],
        }
        return {
            **_head("result", self.target),
            **({} if self.title else alone),
            "target": self.target.to_json(),
            "objective": str(self.objective),
            "value": self.value,
            "library_value": self.library_value,
            "sections": {
                name: {"value": value, "library_value": library}
                for name, (value, library) in self.sections.items()
            },
            "stopped": str(self.stopped),
            "trials": self.trials,
            "resumed": self.resumed,
            "lost": self.lost,
            "failures": dict(self.failures),
            "seconds": self.seconds,
            "overhead": self.overhead,
            "history": self.history,
            "tasks": [_task(task) for task in self.tasks],
        }


SuiteProgress = Progress
"""The progress of a suite: the same, with several ``tasks``."""
SuiteResult = TuningResult
"""The result of a suite: the same, with several ``tasks``."""

Event = Started | Compared | Progress | TuningResult
OnEvent = Callable[[Event], None]
OnProgress = Callable[[Progress], None]


def _head(event: str, target: Target) -> dict[str, Any]:
    return {"event": event, "version": VERSION, "target_key": target.fingerprint}


def _alone(title: str, members: Sequence[Member]) -> dict[str, Any]:
    """Return the workload that is tuned by itself; nothing of a suite."""
    return {} if title else {"workload": members[0].workload.to_json()}


def _member(member: Member) -> dict[str, Any]:
    """Return a workload, its weight, and that in each section of a suite that has some."""
    found: dict[str, Any] = {
        "name": member.name,
        "workload": member.workload.to_json(),
        "weight": member.weight,
    }
    return found | ({"sections": dict(member.sections)} if member.sections else {})


def _task(task: TaskState) -> dict[str, Any]:
    best = task.best
    return {
        **_member(task.member),
        "schedule": None if best is None else best.schedule.to_json(),
        "latency_s": task.latency,
        "numpy_s": task.numpy_seconds,
        "gain": task.gain,
        "trials": task.trials,
        "resumed": task.resumed,
        "failures": dict(task.failures),
        "stopped": None if task.stopped is None else str(task.stopped),
    }


def _found(task: TaskState, best: Measurement) -> dict[str, Any]:
    """Return the rates of the best, their intervals, and whether the machine was busy."""
    estimate, ratio = latency(best), over_rival(best, NUMPY)
    in_turns = rival_seconds(best, NUMPY)
    told: dict[str, Any] = _rates(task.baseline, best.score) or {}
    if in_turns is not None:
        told["over_numpy"] = None if ratio is None else ratio.value
    return {
        **told,
        "latency_interval_s": None if estimate is None else estimate.ends,
        "over_numpy_interval": None if ratio is None else ratio.ends,
        "numpy_in_turns_s": in_turns,
        "busy": why_busy(best) or None,
    }


def _rates(baseline: Baseline, score: float | None) -> dict[str, float | None] | None:
    if score is None:
        return None
    return {
        "latency_s": score,
        "gflops": baseline.gflops(score),
        "of_peak": baseline.of_peak(score),
        "over_numpy": baseline.over_numpy(score),
    }
