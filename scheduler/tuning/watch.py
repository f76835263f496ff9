"""Follow the tasks of a run, and make events of what they report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import starmap, zip_longest

from tilewright.measure.records.measurement import Measurement
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.suite import Member
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.events import OnProgress, Progress, TuningResult
from tilewright.scheduler.tuning.ledger import Ledger
from tilewright.scheduler.tuning.states import Stop, TaskState
from tilewright.scheduler.tuning.task import Task
from tilewright.spaces.target import Target

LEADERS = 5  # schedules that a result lists


@dataclass
class Watch:
    """Follows the tasks of a run, and reports their state to ``on_progress``. ``title`` is that of
    the suite, empty where one workload is tuned by itself."""

    title: str
    members: Sequence[Member]
    target: Target
    baselines: Sequence[Baseline]
    objective: Objective
    budget: Budget
    ledger: Ledger
    on_progress: OnProgress | None
    tasks: Sequence[Task] = ()
    history: list[tuple[int, float, float]] = field(default_factory=list)

    def report(self, place: int, phase: str, latest: Measurement | None) -> None:
        """The task at ``place`` has something to tell, see :data:`scheduler.tuning.task.Report`;
        while tasks begin, only the last one has."""
        if latest is None and not self.tasks[-1].has_begun:
            return
        progress = Progress(
            title=self.title,
            objective=self.objective,
            tasks=self._states(),
            target=self.target,
            phase=phase,
            place=place,
            latest=latest,
            trials_allowed=self.budget.trials,
            elapsed=self.ledger.elapsed,
            seconds_allowed=self.budget.seconds,
        )
        if phase == "search":
            self._note(progress)
        if self.on_progress is not None:
            self.on_progress(progress)

    def result(self, stopped: Stop) -> TuningResult:
        """Return the result of the run."""
        spent = self.ledger.spent
        losses = [loss.error_text for task in self.tasks for loss in task.board.losses[-1:]]
        return TuningResult(
            title=self.title,
            objective=self.objective,
            tasks=self._states(),
            target=self.target,
            stopped=stopped,
            history=tuple(self.history if self.title else self.tasks[0].board.history),
            seconds=self.ledger.elapsed,
            waiting_seconds=spent("waiting"),
            search_seconds=spent("search"),
            lowering_seconds=spent("lowering"),
            database_seconds=spent("database"),
            idle_seconds=spent("idle"),
            lacking=losses[0] if losses else "",
            before_seconds=self.ledger.before,
            leaders=tuple(self.tasks[0].leaders(LEADERS)),
        )

    def _note(self, progress: Progress) -> None:
        value = progress.value
        if value is not None and (
            not self.history or self.objective.better(value, self.history[-1][2])
        ):
            self.history.append((progress.trials, progress.elapsed, value))

    def _states(self) -> tuple[TaskState, ...]:
        return tuple(starmap(_state, zip_longest(self.members, self.baselines, self.tasks)))


def _state(member: Member, baseline: Baseline, task: Task | None) -> TaskState:
    """Say where a workload stands; one without a task has been left out for want of time."""
    if task is None:
        return TaskState(member, baseline, 0, 0, 0, 0, {}, None, None, Stop.SECONDS)
    board = task.board
    return TaskState(
        member=member,
        baseline=baseline,
        trials=board.trials,
        resumed=board.resumed,
        pending=task.pending,
        lost=board.lost,
        failures=dict(board.failures),
        best=board.best,
        first_latency=task.first_latency,
        stopped=task.stop,
    )
