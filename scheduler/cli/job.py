"""Run ``tune`` and ``resume``: tune a workload or a suite on one target or several, and show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.database import Database
from tilewright.measure.tables.retries import UnavailableError, waiting
from tilewright.scheduler.cli.display.choice import Display, display
from tilewright.scheduler.cli.executors import Executors, short_names
from tilewright.scheduler.cli.exit_codes import NO_KERNEL, exit_code_of
from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.output import clock, put
from tilewright.scheduler.cli.parallel_jobs import Job, run_in_parallel, run_in_sequence
from tilewright.scheduler.cli.pasting import lines_to_paste
from tilewright.scheduler.cli.text import command_line, say, some, without_passwords
from tilewright.scheduler.defaults import build_helpers
from tilewright.scheduler.limits import check_memory
from tilewright.scheduler.opening import as_model
from tilewright.scheduler.strategies.registry import EVOLUTIONARY, check
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.suite import Suite
from tilewright.scheduler.suites.tune import check_suite
from tilewright.scheduler.tuning.baseline import SHARE, Baseline, measure_baselines
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.events import Compared, Started, TuningResult
from tilewright.scheduler.tuning.interrupt import exit_code, is_heard
from tilewright.scheduler.tuning.states import Stop, TaskState
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Request:
    """One run to make on one target. ``objective`` applies to suites only."""

    what: Workload | Suite
    target: Target
    budget: Budget
    seed: int
    session: str
    objective: Objective = Objective.LATENCY
    search: str = EVOLUTIONARY
    numerics: Numerics = Numerics.STRICT

    @cached_property
    def workloads(self) -> list[Workload]:
        """The one, or those of the suite."""
        if isinstance(self.what, Suite):
            return [member.workload for member in self.what.members]
        return [self.what]


@dataclass(frozen=True)
class RunOptions:
    """Options that all requests of a command share: the database of results, the model that leads
    the search, what is printed, and the ``command`` that repeats the run, if there is one."""

    db: str
    model: Path | None
    format: Format
    quiet: bool
    verbose: bool
    command: str = ""

    @property
    def prints_notes(self) -> bool:
        """True if a person reads the output and wants more than the result."""
        return self.format is Format.TABLE and not self.quiet


def run_requests(
    requests: Sequence[Request],
    run_options: RunOptions,
    executors: Executors,
    began: float | None = None,
) -> int:
    """Tune as requested, on a cluster all at once, and show how it goes; the largest exit code.

    Seconds count from ``began`` (by ``time.monotonic``), but for what is built once to measure
    kernels here; on a cluster from now, for its start costs none. :class:`InputError` before
    anything begins, if one of the requests cannot be served.
    """
    began = began if executors.cluster is None else time.monotonic()
    for request in requests:
        check(request.search, run_options.model)
        _check(request, executors, began)
    if began is not None and executors.cluster is None:
        began += _build_helpers(requests, run_options)
    names = short_names([request.target for request in requests])
    jobs: list[Job] = []
    for request, name in zip(requests, names, strict=True):
        model = None if run_options.model is None else as_model(run_options.model)
        since = None if jobs else began  # each of several has all the time
        jobs.append((name, partial(_tune, request, run_options, executors, name, model, since)))
    code = run_in_sequence(jobs) if executors.cluster is None else run_in_parallel(jobs)
    if code == 0 and run_options.prints_notes:
        put("\n".join(_kept(requests, run_options)))
    return code


def _build_helpers(requests: Sequence[Request], run_options: RunOptions) -> float:
    """Build what measures kernels here, the first time, and say so; the seconds that took."""
    took = sum(build_helpers(request.target) for request in requests)
    if took and run_options.prints_notes:
        put(f"built what measures kernels here, once, in {clock(took)}; no --seconds of the run")
    return took


def _kept(requests: Sequence[Request], run_options: RunOptions) -> Iterator[str]:
    """Yield the lines on where results are kept, and lines to paste. A suite has many workloads, so
    that one is enough of an example."""
    yield f"kept in {without_passwords(run_options.db)}, for tilewright query and best() in Python"
    found = [(request.workloads[0], request.target, request.numerics) for request in requests]
    yield from lines_to_paste(found, run_options.db, run_options.command)


def _check(request: Request, executors: Executors, began: float | None) -> None:
    """Raise :class:`InputError` for what cannot be tuned there."""
    if isinstance(request.what, Suite):
        until = (time.monotonic() if began is None else began) + request.budget.seconds
        what = (request.what, request.target, request.objective)
        check_suite(*what, request.numerics, until)
    else:
        space_for(request.what, request.target, request.numerics)
    for workload in request.workloads if executors.is_here else ():
        check_memory(workload, request.target)


def _tune(
    request: Request,
    run_options: RunOptions,
    executors: Executors,
    name: str,
    model: CostModel | None,
    began: float | None,
) -> int:
    """Carry out one request, of several if its target has a ``name``; the exit code."""
    options = (run_options.format, run_options.quiet, run_options.verbose)
    budget, show = request.budget, display(*options, name, executors.status)
    until = budget.until(time.monotonic() if began is None else began)
    has_begun = False
    try:
        with waiting(until), _tuner(request, run_options.db, executors, show, model) as tuner:
            has_begun = True
            result = tuner.run(budget.trials, budget.seconds, budget.patience, show.tell, began)
            show.tell(result)
    except UnavailableError as error:
        if not has_begun:
            raise
        words = f"{error}; to go on: tilewright resume {request.session}"
        code = exit_code() if is_heard() else exit_code_of(error)
    else:
        words, code = ending(result, request.session, partial(executors.lacking, request.target))
    if words:
        say(f"{name}: {words}" if name else words)
    return code


@contextmanager
def _tuner(
    request: Request, db: str, executors: Executors, show: Display, model: CostModel | None
) -> Iterator[Tuner]:
    """Open a tuner with an executor and the database; ``show`` has been told that the run starts,
    and what it is compared with. All are closed at the end."""
    what, target, seconds = request.what, request.target, SHARE * request.budget.seconds
    with executors.executor_for(target) as executor, Database(db) as database, show:
        show.tell(Started.of(what, target, request.session))
        baselines = [Baseline(workload) for workload in request.workloads]
        if executors.is_here:
            baselines = measure_baselines(request.workloads, target, seconds)
        show.tell(Compared(target, tuple(baselines)))
        yield Tuner(
            what,
            target,
            database,
            executor,
            baselines=baselines,
            objective=request.objective,
            session=request.session,
            command=command_line(),
            configuration=executors.configuration,
            strategy=request.search,
            model=model,
            seed=request.seed,
            numerics=request.numerics,
        )


def ending(result: TuningResult, session: str, lacking: Callable[[], str]) -> tuple[str, int]:
    """Return the sentence on how a run ended (may be empty), and the exit code.

    ``lacking`` says which workers have gone. It is called only if the run ended for lack of
    workers, or measured nothing.
    """
    missing = [task for task in result.tasks if task.best is None]
    none = _none_right(missing, result, lacking) if missing else ""
    if result.stopped is Stop.INTERRUPTED:
        so_far = "this is the best so far" if len(missing) < len(result.tasks) else none
        return f"interrupted; {so_far}; to go on: tilewright resume {session}", exit_code()
    if result.stopped is Stop.WORKERS:
        so_far = none or f"{lacking()}; this is the best so far"
        return f"{so_far}; to go on: tilewright resume {session}", NO_KERNEL
    if result.stopped is Stop.MACHINE or (missing and result.lacking):
        lost = f"{result.lost} attempts lost"
        return f"this machine failed, not the kernels: {result.lacking} ({lost})", NO_KERNEL
    return none, NO_KERNEL if missing else 0


def _none_right(
    missing: Sequence[TaskState], result: TuningResult, lacking: Callable[[], str]
) -> str:
    if result.stopped in (Stop.SECONDS, Stop.WORKERS, Stop.INTERRUPTED) and not result.trials:
        none = f"no kernel was measured{_whose(missing, result)} in {clock(result.seconds)}"
        if result.stopped is Stop.INTERRUPTED:
            return none
        return f"{none}; {lacking() or 'allow more --seconds'}"
    untried = [task for task in missing if result.trials and not task.trials]
    wrong = [task for task in missing if task not in untried]
    said = []
    if wrong:
        each = result.failures.items()
        counts = ", ".join(f"{count} {kind}" for kind, count in each) or "none ran"
        said.append(f"no kernel was right{_whose(wrong, result)} ({counts})")
    if untried:
        said.append(f"no kernel was measured{_whose(untried, result)}")
        if result.stopped in (Stop.TRIALS, Stop.SECONDS):
            said.append(f"allow more --{result.stopped}")
    return "; ".join(said)


def _whose(tasks: Sequence[TaskState], result: TuningResult) -> str:
    """Return for which workloads of a suite something is said; nothing of a workload by itself."""
    return f" for {some([task.member.label for task in tasks])}" if result.title else ""
