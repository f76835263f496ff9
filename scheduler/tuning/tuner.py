"""Tune a workload or a suite: searches propose, an executor builds and runs, a database records.

A workload is a suite of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import new_job_id
from tilewright.scheduler.defaults import (
    build_helpers,
    default_pace,
    load_early,
    local_executor,
)
from tilewright.scheduler.limits import check_memory
from tilewright.scheduler.strategies.registry import EVOLUTIONARY, factory
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.suites.allocation import (
    WINDOW,
    Allocation,
    TaskStats,
    Worths,
    by_gradient,
    by_part,
    equally,
)
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.sections import slopes_of
from tilewright.scheduler.suites.shared_model import SharedModel, sharing_search
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.budget import SECONDS, TRIALS, Budget, Effort, budget_for
from tilewright.scheduler.tuning.events import OnProgress, Started, TuningResult
from tilewright.scheduler.tuning.ledger import Ledger
from tilewright.scheduler.tuning.loop import Tuning
from tilewright.scheduler.tuning.pace import LEAST_BATCH
from tilewright.scheduler.tuning.runs.run_log import new_run
from tilewright.scheduler.tuning.searching import new_search
from tilewright.scheduler.tuning.set_up import search_options, set_up
from tilewright.scheduler.tuning.study import Callback, Study
from tilewright.scheduler.tuning.task import Task
from tilewright.scheduler.tuning.watch import Watch
from tilewright.scheduler.watching import each_of
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import as_workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.settings import Default
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.spaces.language import Program


class Tuner:
    """Tunes a workload, or those of a suite side by side, on one executor and one target.

    Each is a :class:`scheduler.tuning.task.Task` around a :class:`scheduler.tuning.study.Study`.

    Example::

        with Database("tuning.db") as database:
            result = Tuner(workload("softmax r=4096 c=1024"), target, database).run(128, 60)

    A killed run continues from the database. Measurements of other shapes are the search's prior;
    the workloads of a suite also share a cost model. A ``model`` guides the search until enough is
    measured. ``strategy`` names the search if ``make_search`` makes none. ``batch`` defaults to the
    executor's preferred size. An ``executor`` stays open for its owner, and others may use it too;
    without one each run opens its own on this machine. Schedules are taken from ``spaces``, one of
    each workload, if they are given, and else from all templates that ``numerics`` allows.
    ``baselines`` are what each workload is compared with. ``allocation`` decides which is next,
    ``worths`` what the final comparison of each is worth. ``configuration`` is recorded with the
    run, beside its budget and strategy. ``callbacks`` are those of each study.
    """

    def __init__(
        self,
        what: Workload | Suite,
        target: Target,
        database: Database,
        executor: Executor | None = None,
        make_search: Callable[[Space], Search] | None = None,
        seed: int = 0,
        spaces: Sequence[Space] | None = None,
        batch: int | None = None,
        session: str = "",
        command: str = "",
        baselines: Sequence[Baseline] | None = None,
        model: CostModel | None = None,
        configuration: Mapping[str, object] | None = None,
        strategy: str = EVOLUTIONARY,
        numerics: Numerics = Numerics.STRICT,
        objective: Objective = Objective.LATENCY,
        allocation: Allocation = by_gradient,
        worths: Worths | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> None:
        self._suite = what if isinstance(what, Suite) else None
        self._members = what.members if isinstance(what, Suite) else (Member(what),)
        self._target, self._numerics = target, numerics
        self._database, self._executor = database, executor
        self._make_search = make_search or self._search_by_name
        self._seed, self._batch, self._model = seed, batch, model
        self._session = session or (new_job_id() if self._suite else "")
        self._command = command
        self._strategy = strategy
        self._configuration = dict(configuration or {}) | (
            {} if make_search else {"search": strategy}
        )
        self._configuration |= {"numerics": str(numerics)}
        self._baselines = baselines or [Baseline(m.workload) for m in self._members]
        self._objective, self._allocation = objective, allocation
        self._worths = worths or (by_part if self._suite else equally)
        self._callbacks = tuple(callbacks)
        self._spaces = spaces
        if self._suite is None:  # or else refused before anything is measured
            self._spaces = [self._space(0)]

    def run(
        self,
        trials: int = TRIALS,
        seconds: float = SECONDS,
        patience: int | None = None,
        on_progress: OnProgress | None = None,
        began: float | None = None,
    ) -> TuningResult:
        """Measure at most ``trials`` new schedules of all workloads together, in at most
        ``seconds`` of wall time.

        The time counts from ``began`` (by ``time.monotonic``), by default from now, and includes
        the final comparison. A workload whose last ``patience`` trials brought nothing better gets
        no more. The run stops early at the end of its spaces, if the machine keeps failing, or by
        Ctrl-C. The result is then the best so far.
        """
        budget = Budget(trials, seconds, patience)
        with ExitStack() as stack:
            ledger = Ledger(began, busy=lambda: any(task.pending for task in watch.tasks))
            title = "" if self._suite is None else self._suite.title
            watch = Watch(
                title,
                self._members,
                self._target,
                self._baselines,
                self._objective,
                budget,
                ledger,
                on_progress,
            )
            executor = self._executor or stack.enter_context(closing(local_executor(self._target)))
            tasks: list[Task] = []
            for place in range(len(self._members)):
                if place and ledger.elapsed > budget.seconds:
                    break  # the others have no task, for there is no time
                tasks.append(self._task(place, executor, budget, watch))
            watch.tasks = tasks
            if self._suite is not None:
                self._shared = SharedModel([task.space for task in tasks])
            if self._learns(budget):
                load_early()
            order = partial(self._ordered, tasks)
            stop = Tuning(tasks, executor, ledger, budget, order).run()
        return watch.result(stop)

    def _task(self, place: int, executor: Executor, budget: Budget, watch: Watch) -> Task:
        space, baseline, parts = self._space(place), self._baselines[place], len(self._members)
        batch, seconds = self._batch or executor.batch, budget.seconds / parts
        run = new_run(
            space,
            baseline,
            session=self._session,
            command=self._command,
            seed=self._seed,
            configuration=asdict(budget) | self._configuration | self._of_suite(place),
        )
        study = Study(
            space.workload,
            space.target,
            self._database,
            search=self._make_search,
            callbacks=self._callbacks,
            space=space,
            run=run,
            ledger=watch.ledger,
        )
        return Task(
            study,
            executor,
            default_pace(space, batch, budget.trials // parts, seconds, baseline.start),
            partial(watch.report, place),
            self._model,
            lambda: self._worths(self._parts(watch.tasks))[place],
            baseline.rivals,
            rivals_last=self._suite is not None,
        )

    def _space(self, place: int) -> Space:
        """Return the space of one workload; :class:`InputError` if its kernels cannot be
        verified."""
        workload = self._members[place].workload
        check_sensitivity(workload)
        if self._spaces:
            return self._spaces[place]
        return space_for(workload, self._target, self._numerics)

    def _of_suite(self, place: int) -> dict[str, object]:
        """Return the suite's facts that each run records, see
        :func:`scheduler.tuning.runs.sessions.suite_of`."""
        if self._suite is None:
            return {}
        member = self._members[place]
        own: dict[str, object] = {"name": member.name, "weight": member.weight}
        if member.sections:
            own["sections"] = dict(member.sections)
        return own | {"suite": self._suite.title, "objective": str(self._objective)}

    def _learns(self, budget: Budget) -> bool:
        """Tell whether a model learns, which it does not from the one batch that few trials are."""
        is_ours = self._make_search == self._search_by_name and self._strategy == EVOLUTIONARY
        return is_ours and budget.trials > LEAST_BATCH

    def _search_by_name(self, space: Space) -> Search:
        if self._suite is None:
            return new_search(space, self._database, self._strategy, self._seed, self._model)
        if self._strategy != EVOLUTIONARY:
            return factory(self._strategy)(space, self._seed)
        return sharing_search(space, self._database, self._shared, self._seed, self._model)

    def _ordered(self, tasks: Sequence[Task], going_on: Sequence[Task]) -> Sequence[Task]:
        """Return the tasks that continue, in the order in which they are served."""
        if len(tasks) == 1:
            return going_on
        slopes = self._slopes(tasks)
        standings = list(map(_standing, self._members, tasks, slopes))
        return [tasks[i] for i in self._allocation(standings) if tasks[i] in going_on]

    def _slopes(self, tasks: Sequence[Task]) -> list[float]:
        members = self._members[: len(tasks)]
        return slopes_of(self._objective, members, [task.latency for task in tasks])

    def _parts(self, tasks: Sequence[Task]) -> list[float | None]:
        """Return the part of the objective that each task's latency makes up."""
        return [
            None if task.latency is None else task.latency * slope
            for task, slope in zip(tasks, self._slopes(tasks), strict=True)
        ]


def _standing(member: Member, task: Task, slope: float) -> TaskStats:
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


def tune(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
    trials: int | None = None,
    seconds: float | None = None,
    patience: int | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
    model: CostModel | str | Path | None = None,
    search: str = EVOLUTIONARY,
    numerics: Numerics | str = Numerics.STRICT,
    effort: Effort | str = Effort.DEFAULT,
    progress: bool = False,
    callbacks: Iterable[Callback] = (),
) -> TuningResult:
    """Tune ``workload`` on this machine and keep every result in ``database``.

    Example::

        result = tune("matmul m=512 n=512 k=512", "cpu", trials=64, seconds=30, progress=True)
        print(result.best.score, result.best.schedule)  # seconds, decisions

    Text is accepted for workload, target and database: see ``spaces.operators.workload`` and
    ``spaces.target.detect_target``; a database is a path or URL. ``executor`` replaces this
    machine. ``model``, or the model at that path, guides the search until enough is measured.
    ``search`` is one of ``scheduler.strategies.registry.SEARCHES``. ``numerics`` is ``"strict"`` or
    ``"fast"``, which allows algorithms with weaker bounds on errors (:mod:`spaces.numerics.mode`).
    ``effort`` is ``"quick"``, ``"default"`` or ``"thorough"``: 32, 128 or 512 trials and 20, 60 or
    300 seconds, where ``trials`` or ``seconds`` are not given; see :meth:`Tuner.run`. With
    ``progress`` the course of the run is shown as ``tilewright tune`` shows it, and in a notebook
    as one output that is updated. ``callbacks`` are called with the run's
    :class:`~tilewright.Study` and each trial, and may stop it. The time counts from this call,
    without the helpers that are built once to measure kernels here. Raises :class:`InputError` for
    bad input.
    """
    began = time.monotonic()
    workload, target = as_workload(workload), as_target(target)
    budget = budget_for(1, effort, trials, seconds, patience)  # refused before a database is made
    options = search_options(search, seed, model, numerics)
    if executor is None:  # says what is missing here before a database is made
        check_memory(workload, target)
        began += build_helpers(target)
    with set_up(target, database, executor, progress, budget.until(began)) as run:
        run.tell(Started.of(workload, target, compares=False))
        tuner = Tuner(workload, target, run.database, run.executor, callbacks=callbacks, **options)
        report = each_of(run.tell, on_progress)
        result = tuner.run(budget.trials, budget.seconds, patience, report, began)
        run.tell(result)
    return result
