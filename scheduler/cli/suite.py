"""``tilewright tune --suite``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from costmodel.interfaces import CostModel
from measure.database import Database
from scheduler.budget import Budget
from scheduler.cli.options import Format
from scheduler.cli.place import Place
from scheduler.cli.suite_display import SuiteDisplay, suite_display
from scheduler.cli.text import command_line, say
from scheduler.interrupt import exit_code
from scheduler.objective import Objective
from scheduler.opening import as_model
from scheduler.progress import Stop
from scheduler.suite import Suite
from scheduler.suite_progress import SuiteResult
from scheduler.suite_tuner import SuiteTuner, check_memory_of, check_suite
from scheduler.yardstick import SHARE, Yardstick, measure_yardsticks
from spaces.target import Target


@dataclass(frozen=True)
class SuiteRequest:
    """What to tune, what for, how long and in which session; see
    :meth:`scheduler.suite_tuner.SuiteTuner.run`."""

    suite: Suite
    objective: Objective
    target: Target
    budget: Budget
    seed: int
    session: str


def carry_out_suite(
    request: SuiteRequest,
    db: str,
    model: Path | None,
    format: Format,
    quiet: bool,
    verbose: bool,
    began: float | None = None,
    where: Place | None = None,
) -> int:
    """Tune a suite on this machine, or ``where`` that is said, and show how it goes; the exit
    code."""
    suite, machine, budget = request.suite, request.target, request.budget
    check_suite(suite, machine, request.objective)
    where = where or Place((machine,))
    if where.is_here:
        check_memory_of(suite, machine)
    prior = None if model is None else as_model(model)
    show = suite_display(suite, machine, request.session, format, quiet, verbose)
    with _tuner(request, where, db, show, prior) as tuner:
        result = tuner.run(budget.trials, budget.seconds, budget.patience, show.progress, began)
        show.result(result)
    words, code = _ending(result, request.session)
    if words:
        say(words)
    return code


@contextmanager
def _tuner(
    request: SuiteRequest, where: Place, db: str, show: SuiteDisplay, model: CostModel | None
) -> Iterator[SuiteTuner]:
    """A tuner with an executor and the database; ``show`` has been told what the run is compared
    with. All are closed at the end."""
    suite, machine = request.suite, request.target
    with where.executor(machine) as executor, Database(db) as database, show:
        workloads = [member.workload for member in suite.members]
        yardsticks = [Yardstick(workload) for workload in workloads]
        if where.is_here:
            yardsticks = measure_yardsticks(workloads, machine, SHARE * request.budget.seconds)
        show.compare_with(yardsticks)
        yield SuiteTuner(
            suite,
            machine,
            database,
            executor,
            request.objective,
            seed=request.seed,
            model=model,
            session=request.session,
            command=command_line(),
            yardsticks=yardsticks,
        )


def _ending(result: SuiteResult, session: str) -> tuple[str, int]:
    """What there is to say of how a run ended, if anything, and the exit code."""
    lacking = [task.member.label for task in result.tasks if task.best is None]
    failures = ", ".join(f"{count} {kind}" for kind, count in result.failures.items())
    none = f"no kernel was right for {', '.join(lacking)} ({failures or 'none ran'})"
    if result.stopped is Stop.INTERRUPTED:
        so_far = "this is the best so far" if len(lacking) < len(result.tasks) else none
        return f"interrupted; {so_far}; to go on: tilewright resume {session}", exit_code()
    if result.stopped is Stop.MACHINE or (lacking and result.lacking):
        lost = f"{result.lost} attempts lost"
        return f"this machine failed, not the kernels: {result.lacking} ({lost})", 1
    return (none, 1) if lacking else ("", 0)
