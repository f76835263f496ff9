"""Tune a suite: give trials to the workload that improves the objective most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import log
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import new_job_id
from tilewright.scheduler.defaults import default_pace
from tilewright.scheduler.strategies.registry import EVOLUTIONARY, factory
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.suites.allocation import (
    WINDOW,
    Allocation,
    TaskStats,
    Worths,
    by_gradient,
    by_part,
)
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.progress import OnSuiteProgress, SuiteResult
from tilewright.scheduler.suites.sections import slopes_of
from tilewright.scheduler.suites.shared_model import SharedModel, sharing_search
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.suites.watch import Watch
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.loop import Tuning
from tilewright.scheduler.tuning.pace import Worth
from tilewright.scheduler.tuning.progress import Ledger
from tilewright.scheduler.tuning.runs.run_log import new_run
from tilewright.scheduler.tuning.task import Task
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database


class SuiteTuner:
    """Tunes the workloads of a suite side by side on one executor and one target.

    Each is a :class:`scheduler.tuning.task.Task`, so that a killed run goes on where it was; all
    share a cost model. Others may use ``executor`` too. ``allocation`` decides which is next,
    ``worths`` what the final comparison of each is worth.
    ``baselines`` are what each is compared with. Schedules are taken from ``spaces`` if they are
    given, and else from all templates that ``numerics`` allows. ``make_search``, or the search that
    ``strategy`` names, takes the place of that under the shared model.
    """

    def __init__(
        self,
        suite: Suite,
        target: Target,
        database: Database,
        executor: Executor,
        objective: Objective = Objective.LATENCY,
        allocation: Allocation = by_gradient,
        seed: int = 0,
        model: CostModel | None = None,
        session: str = "",
        command: str = "",
        baselines: Sequence[Baseline] | None = None,
        spaces: Sequence[Space] | None = None,
        make_search: Callable[[Space], Search] | None = None,
        configuration: Mapping[str, object] | None = None,
        strategy: str = EVOLUTIONARY,
        worths: Worths = by_part,
        numerics: Numerics = Numerics.STRICT,
    ) -> None:
        self.suite, self.target, self._numerics = suite, target, numerics
        self._given_spaces = spaces
        self._database, self._executor = database, executor
        self._objective, self._allocation, self._worths = objective, allocation, worths
        self._seed, self._model = seed, model
        self._session, self._command = session or new_job_id(), command
        self._strategy = strategy
        self._configuration = dict(configuration or {}) | (
            {} if make_search else {"search": strategy}
        )
        self._configuration |= {"numerics": str(numerics)}
        self._baselines = baselines or [Baseline(m.workload) for m in suite.members]
        self._make_search = make_search or self._strategic_search

    def run(
        self,
        trials: int,
        seconds: float,
        patience: int | None = None,
        on_progress: OnSuiteProgress | None = None,
        began: float | None = None,
    ) -> SuiteResult:
        """Measure at most ``trials`` new schedules of all workloads together, in at most
        ``seconds`` of wall time; see :meth:`scheduler.tuning.tuner.Tuner.run`.

        A workload whose last ``patience`` trials brought nothing better gets no more.
        """
        budget = Budget(trials, seconds, patience)
        ledger = Ledger(began, busy=lambda: any(task.pending for task in tasks))
        watch = Watch(
            self.suite.members, self._baselines, self._objective, budget, ledger, on_progress
        )

        def worth(place: int) -> Worth:
            return self._worths(self._parts(tasks))[place]

        tasks: list[Task] = []
        for place in range(len(self.suite.members)):
            if place and ledger.elapsed > budget.seconds:
                break  # the others have no task, for there is no time
            task = self._task(place, budget, ledger, watch, partial(worth, place))
            tasks.append(task)
        self._shared = SharedModel([task.space for task in tasks])
        watch.tasks = tasks
        order = partial(self._ordered, tasks)
        stop = Tuning(tasks, self._executor, ledger, budget, order).run()
        return watch.result(self.target, stop)

    def _task(
        self, place: int, budget: Budget, ledger: Ledger, watch: Watch, worth: Callable[[], Worth]
    ) -> Task:
        space, executor, parts = self._space(place), self._executor, len(self.suite.members)
        baseline, seconds = self._baselines[place], budget.seconds / parts
        return Task(
            space,
            self._database,
            executor,
            partial(self._make_search, space),
            default_pace(space, executor.batch, budget.trials // parts, seconds, baseline.start),
            ledger,
            new_run(
                space,
                baseline,
                session=self._session,
                command=self._command,
                seed=self._seed,
                configuration=asdict(budget) | self._configuration | self._of_suite(place),
            ),
            partial(watch.report, place),
            self._model,
            worth,
            baseline.rivals,
            rivals_last=True,
        )

    def _space(self, place: int) -> Space:
        """Return the space of one workload; :class:`InputError` if its kernels cannot be
        verified."""
        workload = self.suite.members[place].workload
        check_sensitivity(workload)
        if self._given_spaces:
            return self._given_spaces[place]
        return space_for(workload, self.target, self._numerics)

    def _of_suite(self, place: int) -> dict[str, object]:
        """Return the suite's facts that each run records, see
        :func:`scheduler.tuning.runs.sessions.suite_of`."""
        member = self.suite.members[place]
        own: dict[str, object] = {"name": member.name, "weight": member.weight}
        if member.sections:
            own["sections"] = dict(member.sections)
        return own | {"suite": self.suite.title, "objective": str(self._objective)}

    def _strategic_search(self, space: Space) -> Search:
        if self._strategy != EVOLUTIONARY:
            return factory(self._strategy)(space, self._seed)
        return sharing_search(space, self._database, self._shared, self._seed, self._model)

    def _ordered(self, tasks: Sequence[Task], going_on: Sequence[Task]) -> list[Task]:
        """Return the tasks that continue, in the order in which they are served."""
        slopes = self._slopes(tasks)
        standings = list(map(self._standing, self.suite.members, tasks, slopes))
        return [tasks[i] for i in self._allocation(standings) if tasks[i] in going_on]

    def _slopes(self, tasks: Sequence[Task]) -> list[float]:
        members = self.suite.members[: len(tasks)]
        return slopes_of(self._objective, members, [task.latency for task in tasks])

    def _parts(self, tasks: Sequence[Task]) -> list[float | None]:
        """Return the part of the objective that each task's latency makes up."""
        return [
            None if task.latency is None else task.latency * slope
            for task, slope in zip(tasks, self._slopes(tasks), strict=True)
        ]

    def _standing(self, member: Member, task: Task, slope: float) -> TaskStats:
        return TaskStats(
            slope=slope,
            flops=member.workload.flops,
            kind=_kind(member.workload),
            units=task.units,
            seconds=task.estimates.batch_seconds,
            latencies=(*task.levels[-WINDOW:], task.latency),
        )


def _kind(workload: Workload) -> tuple[str, str, int]:
    """Workloads of one kind can be expected to reach about as many FLOP/s: those of one operator
    and element type with FLOPs per byte of the same order, by powers of four."""
    intensity = max(1, workload.flops) / workload.least_bytes
    return workload.operator, workload.arithmetic[0], round(log(intensity, 4))
