"""``tilewright tune``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scheduler.budget import SECONDS, TRIALS, Budget
from scheduler.cli.options import (
    DatabaseName,
    Format,
    FormatOption,
    ModelOption,
    Parameters,
    Quiet,
    Threads,
    Verbose,
    parse_workload,
)
from scheduler.cli.place import (
    Address,
    ExecutorName,
    ExecutorOption,
    Insecure,
    Place,
    TargetNames,
    place,
)
from scheduler.cli.several import on_each
from scheduler.cli.text import command_line, say
from scheduler.interrupt import exit_code
from scheduler.objective import Objective
from scheduler.suite import Suite, read_suite
from spaces.checks import positive
from spaces.errors import InputError, shown
from spaces.target import Target
from spaces.workload import Workload

if TYPE_CHECKING:
    from costmodel.interfaces import CostModel
    from scheduler.cli.progress import Display
    from scheduler.progress import TuningResult
    from scheduler.tuner import Tuner
    from spaces.space import Space


def tune_command(
    operator: Annotated[
        str | None, typer.Argument(help="What to compute, such as matmul.", show_default=False)
    ] = None,
    parameters: Parameters = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Tune the workloads of a TOML file, or of a shipped suite, such as bert-base.",
        ),
    ] = None,
    objective: Annotated[
        Objective,
        typer.Option(
            help="Of a suite. latency: their weighted sum; speedup: over NumPy, their mean."
        ),
    ] = Objective.LATENCY,
    target: TargetNames = None,
    threads: Threads = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Schedules to measure at most.", show_default="128 a workload"),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds to take at most.", show_default="60 a workload"),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many trials without a gain.")
    ] = None,
    db: DatabaseName = "tuning.db",
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    model: ModelOption = None,
    format: FormatOption = Format.TABLE,
    quiet: Quiet = False,
    verbose: Verbose = False,
    executor: ExecutorOption = ExecutorName.LOCAL,
    address: Address = None,
    insecure_cluster: Insecure = False,
) -> None:
    """Search for the fastest schedule, and keep every result in the database.

    With --suite, of several workloads: trials go where the objective gains most by them.

    On a terminal a live table shows how it goes; elsewhere a line says each gain, and every 30
    seconds where the search stands. Ctrl-C ends it with the best found so far.

    \b
    Examples:
      tilewright tune matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])" --seconds 60
      tilewright tune --suite bert-base --seconds 600
      tilewright tune matmul m=512 n=512 k=512 --executor ray --address 10.0.0.1:6379
    """
    began = time.monotonic()
    what = _what(operator, parameters, suite, objective)
    count = len(what.members) if isinstance(what, Suite) else 1
    trials = TRIALS * count if trials is None else trials
    seconds = SECONDS * count if seconds is None else positive("--seconds", seconds)
    session = secrets.token_hex(4)
    names = target or ["cpu"]
    with place(names, threads, executor, address, insecure_cluster) as where:
        quiet = quiet or len(where.targets) > 1
        began = began if where.cluster is None else time.monotonic()  # its start costs no time
        how = (db, model, format, quiet, verbose, began, where)

        def tune(machine: Target) -> int:
            if isinstance(what, Suite):
                from scheduler.cli.suite import SuiteRequest, carry_out_suite

                budget = Budget(trials, seconds, patience)
                wanted = SuiteRequest(what, objective, machine, budget, seed, session)
                return carry_out_suite(wanted, *how)
            request = Request(what, machine, trials, seconds, patience, seed, session)
            return carry_out(request, *how)

        raise typer.Exit(on_each(where.targets, tune))


def _what(
    operator: str | None, parameters: list[str] | None, suite: str | None, objective: Objective
) -> Workload | Suite:
    """What to tune; :class:`InputError` if that is nothing, or two things."""
    if suite is not None:
        if operator is not None:
            raise InputError(f"--suite and the operator {shown(operator)}; allowed: one of them")
        return read_suite(suite)
    if operator is None:
        raise InputError("Missing argument 'OPERATOR', or --suite")
    if objective is not Objective.LATENCY:
        raise InputError(f"--objective {objective} is for a suite; allowed here: latency")
    return parse_workload(operator, parameters)


@dataclass(frozen=True)
class Request:
    """What to tune, how long and in which session; see :meth:`scheduler.tuner.Tuner.run`."""

    workload: Workload
    target: Target
    trials: int
    seconds: float
    patience: int | None
    seed: int
    session: str


def carry_out(
    request: Request,
    db: str,
    model: Path | None,
    format: Format,
    quiet: bool,
    verbose: bool,
    began: float | None = None,
    where: Place | None = None,
) -> int:
    """Tune on this machine, or ``where`` that is said, and show how it goes; the exit code."""
    from scheduler.cli.progress import display
    from scheduler.limits import check_memory
    from scheduler.opening import as_model
    from spaces.registry import space_for

    where = where or Place((request.target,))
    if where.is_here:
        check_memory(request.workload, request.target)
    space = space_for(request.workload, request.target)  # says what is wrong before anything begins
    prior = None if model is None else as_model(model)
    session = request.session
    show = display(request.workload, request.target, session, format, quiet, verbose, where.status)
    with _tuner(request, where, space, db, show, prior) as tuner:
        result = tuner.run(request.trials, request.seconds, request.patience, show.progress, began)
        show.result(result)
    words, code = _ending(result, session)
    if words:
        say(words)
    return code


@contextmanager
def _tuner(
    request: Request,
    where: Place,
    space: Space,
    db: str,
    show: Display,
    model: CostModel | None,
) -> Iterator[Tuner]:
    """A tuner with an executor and the database; ``show`` has been told what the run is compared
    with. All are closed at the end."""
    from measure.database import Database
    from scheduler.tuner import Tuner
    from scheduler.yardstick import SHARE, Yardstick, measure_yardstick

    workload, machine = request.workload, request.target
    with where.executor(machine) as executor, Database(db) as database, show:
        yardstick = Yardstick(workload)
        if where.is_here:
            yardstick = measure_yardstick(workload, machine, SHARE * request.seconds)
        show.compare_with(yardstick)
        yield Tuner(
            workload,
            machine,
            database,
            executor,
            seed=request.seed,
            space=space,
            session=request.session,
            model=model,
            command=command_line(),
            yardstick=yardstick,
        )


def _ending(result: TuningResult, session: str) -> tuple[str, int]:
    """What there is to say of how a run ended, if anything, and the exit code."""
    from scheduler.progress import Stop

    failures = ", ".join(f"{count} {kind}" for kind, count in result.failures.items())
    if result.stopped is Stop.INTERRUPTED:
        none = f" before any kernel was right ({failures or 'none ran'})"
        words = "; this is the best so far" if result.best else none
        return f"interrupted{words}; to go on: tilewright resume {session}", exit_code()
    if result.stopped is Stop.MACHINE or (result.best is None and result.lacking):
        lost = f"{result.lost} attempts lost"
        return f"this machine failed, not the kernels: {result.lacking} ({lost})", 1
    if result.best is None:
        return f"no kernel was right ({failures or 'none ran'})", 1
    return "", 0
