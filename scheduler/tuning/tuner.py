"""Tune one workload: a search proposes, an executor builds and runs, the database records."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Measurement
from tilewright.scheduler.defaults import (
    build_helpers,
    default_pace,
    default_search,
    local_executor,
)
from tilewright.scheduler.limits import check_memory
from tilewright.scheduler.strategies.registry import EVOLUTIONARY, factory
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.budget import SECONDS, TRIALS, Budget, Effort, budget_for
from tilewright.scheduler.tuning.loop import Tuning
from tilewright.scheduler.tuning.progress import Ledger, Progress, Stop, TuningResult
from tilewright.scheduler.tuning.runs.run_log import new_run
from tilewright.scheduler.tuning.set_up import search_options, set_up
from tilewright.scheduler.tuning.task import Report, Task
from tilewright.scheduler.tuning.transfer import transfer
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

OnProgress = Callable[[Progress], None]
LEADERS = 5  # schedules that a result lists


class Tuner:
    """Tunes one workload on one target, see :class:`scheduler.tuning.task.Task`.

    Example::

        with Database("tuning.db") as database:
            result = Tuner(workload("softmax r=4096 c=1024"), target, database).run(128, 60)

    A killed run continues from the database. Measurements of other shapes are the search's prior.
    ``batch`` defaults to the executor's preferred size. An ``executor`` stays open for its owner;
    without one each run opens its own on this machine. A ``model`` guides the search until enough
    is measured. ``strategy`` names the search if none is given, see :mod:`scheduler.strategies`.
    ``numerics`` says which templates are allowed if no ``space`` is given. ``configuration``
    is recorded with the run, beside its budget and strategy.
    """

    def __init__(
        self,
        workload: Workload,
        target: Target,
        database: Database,
        executor: Executor | None = None,
        search: Search | None = None,
        seed: int = 0,
        space: Space | None = None,
        batch: int | None = None,
        session: str = "",
        command: str = "",
        baseline: Baseline | None = None,
        model: CostModel | None = None,
        configuration: Mapping[str, object] | None = None,
        strategy: str = EVOLUTIONARY,
        numerics: Numerics = Numerics.STRICT,
    ) -> None:
        self.workload = workload
        self.target = target
        self.space = space or space_for(workload, target, numerics)
        check_sensitivity(workload)  # or else refused before anything is measured
        self._database = database
        self._executor = executor
        self._search, self._model, self._seed = search, model, seed
        self._batch = batch
        self._session, self._command = session, command
        self._strategy = strategy
        self._configuration = dict(configuration or {}) | ({} if search else {"search": strategy})
        self._configuration |= {"numerics": str(numerics)}
        self._baseline = baseline or Baseline(workload)

    def run(
        self,
        trials: int = TRIALS,
        seconds: float = SECONDS,
        patience: int | None = None,
        on_progress: OnProgress | None = None,
        began: float | None = None,
    ) -> TuningResult:
        """Measure at most ``trials`` new schedules in at most ``seconds`` of wall time.

        The time counts from ``began`` (by ``time.monotonic``), by default from now, and includes
        the final comparison. The run stops early after ``patience`` trials without a gain, at the
        end of the space, if the machine keeps failing, or by Ctrl-C. The result is then the best so
        far.
        """
        budget = Budget(trials, seconds, patience)
        with ExitStack() as stack:
            ledger = Ledger(began, busy=lambda: task.pending > 0)
            executor = self._executor or stack.enter_context(closing(local_executor(self.target)))

            def report(phase: str, latest: Measurement | None) -> None:
                if on_progress is not None:
                    on_progress(_progress(task, phase, latest, budget, ledger))

            task = self._task(executor, budget, ledger, report)
            stop = Tuning([task], executor, ledger, budget).run()
        return _result(task, stop, ledger)

    def _task(self, executor: Executor, budget: Budget, ledger: Ledger, report: Report) -> Task:
        batch = self._batch or executor.batch
        return Task(
            self.space,
            self._database,
            executor,
            self._make_search,
            default_pace(self.space, batch, budget.trials, budget.seconds, self._baseline.start),
            ledger,
            new_run(
                self.space,
                self._baseline,
                session=self._session,
                command=self._command,
                seed=self._seed,
                configuration=asdict(budget) | self._configuration,
            ),
            report,
            self._model,
            rivals=self._baseline.rivals,
        )

    def _make_search(self) -> Search:
        if self._search is not None:
            return self._search
        if self._strategy != EVOLUTIONARY:
            return factory(self._strategy)(self.space, self._seed)
        known = transfer(self.space, self._database)
        return default_search(self.space, self._seed, known, self._model)


def _progress(
    task: Task, phase: str, latest: Measurement | None, budget: Budget, ledger: Ledger
) -> Progress:
    board = task.board
    return Progress(
        phase=phase,
        trials=board.trials,
        trials_allowed=budget.trials,
        resumed=board.resumed,
        pending=task.pending,
        lost=board.lost,
        failures=dict(board.failures),
        best=board.best,
        latest=latest,
        elapsed=ledger.elapsed,
        seconds_allowed=budget.seconds,
    )


def _result(task: Task, stop: Stop, ledger: Ledger) -> TuningResult:
    board = task.board
    return TuningResult(
        workload=task.space.workload,
        target=task.space.target,
        best=board.best,
        stopped=stop,
        trials=board.trials,
        resumed=board.resumed,
        lost=board.lost,
        lacking=board.losses[-1].error_text if board.losses else "",
        failures=dict(board.failures),
        history=tuple(board.history),
        seconds=ledger.elapsed,
        waiting_seconds=ledger.spent("waiting"),
        search_seconds=ledger.spent("search"),
        lowering_seconds=ledger.spent("lowering"),
        database_seconds=ledger.spent("database"),
        idle_seconds=ledger.spent("idle"),
        before_seconds=ledger.before,
        leaders=tuple(task.leaders(LEADERS)),
    )


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
    as one output that is updated. The time counts from this call, without the helpers that are
    built once to measure kernels here. Raises :class:`InputError` for bad input.
    """
    began = time.monotonic()
    workload, target = as_workload(workload), as_target(target)
    budget = budget_for(1, effort, trials, seconds, patience)  # refused before a database is made
    options = search_options(search, seed, model, numerics)
    if executor is None:  # says what is missing here before a database is made
        check_memory(workload, target)
        began += build_helpers(target)
    with set_up(workload, target, database, executor, progress, budget.until(began)) as run:
        tuner = Tuner(workload, target, run.database, run.executor, **options)
        report = each_of(run.show.progress, on_progress)
        result = tuner.run(budget.trials, budget.seconds, patience, report, began)
        run.show.result(result)
    return result
