"""``tilewright tune``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scheduler.cli.options import (
    DatabaseName,
    Format,
    FormatOption,
    ModelOption,
    Operator,
    Parameters,
    Quiet,
    TargetName,
    Threads,
    Verbose,
    parse_workload,
)
from scheduler.cli.text import command_line, say
from scheduler.interrupt import exit_code
from spaces.checks import positive
from spaces.target import Target, detect_target
from spaces.workload import Workload

if TYPE_CHECKING:
    from costmodel.interfaces import CostModel
    from scheduler.cli.progress import Display
    from scheduler.progress import TuningResult
    from scheduler.tuner import Tuner
    from spaces.space import Space


def tune_command(
    operator: Operator,
    parameters: Parameters = None,
    target: TargetName = "cpu",
    threads: Threads = None,
    trials: Annotated[int, typer.Option(min=1, help="Schedules to measure at most.")] = 128,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds to take at most.")] = 60.0,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many trials without a gain.")
    ] = None,
    db: DatabaseName = "tuning.db",
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    model: ModelOption = None,
    format: FormatOption = Format.TABLE,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Search for the fastest schedule, and keep every result in the database.

    On a terminal a live table shows how it goes; elsewhere a line says each gain, and every 30
    seconds where the search stands. Ctrl-C ends it with the best found so far.

    \b
    Example:
      tilewright tune matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])" --seconds 60
    """
    began = time.monotonic()
    workload = parse_workload(operator, parameters)
    machine = detect_target(target, threads)
    positive("--seconds", seconds)
    session = secrets.token_hex(4)
    request = Request(workload, machine, trials, seconds, patience, seed, session)
    raise typer.Exit(carry_out(request, db, model, format, quiet, verbose, began))


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
) -> int:
    """Tune on this machine, and show how it goes; the exit code."""
    from scheduler.cli.progress import display
    from scheduler.limits import check_memory
    from scheduler.opening import as_model
    from spaces.registry import space_for

    check_memory(request.workload, request.target)
    space = space_for(request.workload, request.target)  # says what is wrong before anything begins
    prior = None if model is None else as_model(model)
    session = request.session
    show = display(request.workload, request.target, session, format, quiet, verbose)
    with _tuner(request, space, db, show, prior) as tuner:
        result = tuner.run(request.trials, request.seconds, request.patience, show.progress, began)
        show.result(result)
    words, code = _ending(result, session)
    if words:
        say(words)
    return code


@contextmanager
def _tuner(
    request: Request, space: Space, db: str, show: Display, model: CostModel | None
) -> Iterator[Tuner]:
    """A tuner with an executor of this machine and the database; ``show`` has been told what the
    run is compared with. All are closed at the end."""
    from measure.database import Database
    from scheduler.defaults import local_executor
    from scheduler.tuner import Tuner
    from scheduler.yardstick import SHARE, measure_yardstick

    workload, machine = request.workload, request.target
    with closing(local_executor(machine)) as executor, Database(db) as database, show:
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
