"""Tune a suite: open the database, check the workloads, measure baselines, run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.interfaces import Executor
from tilewright.scheduler.defaults import build_helpers
from tilewright.scheduler.limits import check_memory
from tilewright.scheduler.strategies.registry import EVOLUTIONARY
from tilewright.scheduler.suites.objective import Objective, as_objective
from tilewright.scheduler.suites.suite import Suite, as_suite
from tilewright.scheduler.tuning.baseline import SHARE, has_library, measure_baselines
from tilewright.scheduler.tuning.budget import Effort, budget_for
from tilewright.scheduler.tuning.events import (
    Compared,
    OnProgress,
    Started,
    SuiteResult,
)
from tilewright.scheduler.tuning.set_up import search_options, set_up
from tilewright.scheduler.tuning.study import Callback
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.scheduler.watching import each_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.registry import space_for
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target, as_target

if TYPE_CHECKING:
    from tilewright.measure.database import Database

ALWAYS = 64
"""Workloads of a suite that are looked at however few seconds there are."""


def tune_suite(
    suite: Suite | str | Path,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
    trials: int | None = None,
    seconds: float | None = None,
    patience: int | None = None,
    objective: Objective | str = Objective.LATENCY,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
    model: CostModel | str | Path | None = None,
    search: str = EVOLUTIONARY,
    numerics: Numerics | str = Numerics.STRICT,
    effort: Effort | str = Effort.DEFAULT,
    progress: bool = False,
    section: str | None = None,
    callbacks: Iterable[Callback] = (),
) -> SuiteResult:
    """Tune the workloads of ``suite`` on this machine and keep every result in ``database``.

    Example::

        result = tune_suite("bert-base", seconds=600)
        print(result.value)  # the objective: the weighted sum of latencies, in seconds

    ``suite`` may be the name of a shipped one or the path of a file
    (:mod:`scheduler.suites.suite`). ``target``, ``database``, ``executor``, ``model``, ``search``,
    ``numerics``, ``effort``, ``progress`` and ``callbacks`` are as for
    :func:`scheduler.tuning.tuner.tune`; each workload has a study of its own.
    ``trials`` and ``seconds`` are for all workloads together, by default 128 and a minute for each.
    ``objective`` is ``latency`` or ``speedup`` (:mod:`scheduler.suites.objective`). ``section``
    names the one to tune of a suite of several, such as ``decode``. Raises :class:`InputError` for
    bad input.
    """
    began = time.monotonic()
    suite, target, goal = as_suite(suite), as_target(target), as_objective(objective)
    suite = suite if section is None else suite.section(section)
    budget = budget_for(len(suite.members), effort, trials, seconds, patience)
    options = search_options(search, seed, model, numerics)
    check_suite(suite, target, goal, options["numerics"], began + budget.seconds)
    if executor is None:  # says what is missing here before a database is made
        check_memory_of(suite, target)
        began += build_helpers(target)
    with set_up(target, database, executor, progress, budget.until(began)) as run:
        run.tell(Started.of(suite, target))
        workloads = [member.workload for member in suite.members]
        baselines = measure_baselines(workloads, target, SHARE * budget.seconds)
        run.tell(Compared(target, tuple(baselines)))
        tuner = Tuner(
            suite,
            target,
            run.database,
            run.executor,
            objective=goal,
            baselines=baselines,
            callbacks=callbacks,
            **options,
        )
        report = each_of(run.tell, on_progress)
        result = tuner.run(budget.trials, budget.seconds, patience, report, began)
        run.tell(result)
    return result


def check_suite(
    suite: Suite,
    target: Target,
    objective: Objective,
    numerics: Numerics = Numerics.STRICT,
    until: float = inf,
) -> None:
    """Raise :class:`InputError` if a workload of ``suite`` cannot be tuned.

    It may lack a template, or a library if ``objective`` compares with one. The check must end by
    the time ``until`` (by ``time.monotonic``).
    """
    for place, member in enumerate(suite.members):
        workload = member.workload
        if place >= ALWAYS and time.monotonic() > until:
            raise InputError(
                f"time ran out after checking {place} of the {len(suite.members)} workloads of the "
                "suite; allowed: more seconds, or fewer workloads"
            )
        space_for(workload, target, numerics)
        if objective is Objective.SPEEDUP and not has_library(workload, target):
            raise InputError(
                f"objective=speedup needs a library for {workload} on {target.summary}, and "
                "there is none to compare with; allowed: latency"
            )


def check_memory_of(suite: Suite, target: Target) -> None:
    """See :func:`scheduler.limits.check_memory`, for each workload."""
    for member in suite.members:
        check_memory(member.workload, target)
