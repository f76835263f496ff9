"""``tilewright tune``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from scheduler.cli.options import (
    DatabaseName,
    Format,
    ModelOption,
    Operator,
    Parameters,
    TargetName,
    Threads,
    parse_workload,
)
from scheduler.cli.text import command_line, say
from scheduler.interrupt import exit_code
from spaces.checks import positive
from spaces.target import detect_target

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
    format: Annotated[
        Format, typer.Option(help="table: for people; json: each trial as a line of JSON.")
    ] = Format.TABLE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print a line for each trial.")
    ] = False,
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

    from scheduler.cli.progress import display
    from scheduler.limits import check_memory
    from scheduler.opening import as_model
    from spaces.registry import space_for

    check_memory(workload, machine)
    space = space_for(workload, machine)  # says what is wrong before anything is measured or made
    prior = None if model is None else as_model(model)
    show = display(workload, machine, format, quiet, verbose)
    with _tuner(space, db, show, seconds, seed=seed, model=prior) as tuner:
        result = tuner.run(trials, seconds, patience, show.progress, began)
        show.result(result)
    words, code = _ending(result)
    if words:
        say(words)
    raise typer.Exit(code)


@contextmanager
def _tuner(
    space: Space, db: str, show: Display, seconds: float, seed: int, model: CostModel | None
) -> Iterator[Tuner]:
    """A tuner with an executor of this machine and the database; ``show`` has been told what the
    run of so many ``seconds`` is compared with. All are closed at the end."""
    from measure.database import Database
    from scheduler.defaults import local_executor
    from scheduler.tuner import Tuner
    from scheduler.yardstick import SHARE, measure_yardstick

    workload, machine = space.workload, space.target
    with closing(local_executor(machine)) as executor, Database(db) as database, show:
        yardstick = measure_yardstick(workload, machine, SHARE * seconds)
        show.compare_with(yardstick)
        yield Tuner(
            workload,
            machine,
            database,
            executor,
            seed=seed,
            space=space,
            model=model,
            command=command_line(),
            yardstick=yardstick,
        )


def _ending(result: TuningResult) -> tuple[str, int]:
    """What there is to say of how a run ended, if anything, and the exit code."""
    from scheduler.progress import Stop

    failures = ", ".join(f"{count} {kind}" for kind, count in result.failures.items())
    if result.stopped is Stop.INTERRUPTED:
        none = f" before any kernel was right ({failures or 'none ran'})"
        return f"interrupted{'; this is the best so far' if result.best else none}", exit_code()
    if result.stopped is Stop.MACHINE or (result.best is None and result.lacking):
        lost = f"{result.lost} attempts lost"
        return f"this machine failed, not the kernels: {result.lacking} ({lost})", 1
    if result.best is None:
        return f"no kernel was right ({failures or 'none ran'})", 1
    return "", 0
