"""``tilewright tune``."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Annotated

import typer

from scheduler.cli.options import (
    DatabaseName,
    Operator,
    Parameters,
    TargetName,
    Threads,
    parse_workload,
)
from spaces.target import detect_target


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
) -> None:
    """Search for the fastest schedule, and keep every result in the database.

    On a terminal a live table shows how it goes; otherwise each trial is a line of JSON, and the
    outcome the last one. Ctrl-C ends the search with the best found so far.
    """
    workload = parse_workload(operator, parameters)
    machine = detect_target(target, threads)

    from measure.database import Database
    from scheduler.cli.progress import JsonLines, LiveTable
    from scheduler.limits import check_memory
    from scheduler.progress import Stop
    from scheduler.tuner import Tuner, local_executor
    from scheduler.yardstick import measure_yardstick
    from spaces.registry import space_for

    check_memory(workload)
    space = space_for(workload, machine)  # says what is wrong before anything is measured or made
    with closing(local_executor(machine)) as executor, Database(db) as database:
        yardstick = measure_yardstick(workload, machine)
        display = LiveTable if sys.stdout.isatty() else JsonLines
        with display(yardstick) as show:
            budget = (trials, seconds, patience)
            tuner = Tuner(workload, machine, database, executor, seed=seed, space=space)
            result = tuner.run(*budget, show.progress)
            show.result(result)
    interrupted = result.stopped is Stop.INTERRUPTED
    if result.best is None:
        failures = ", ".join(f"{count} {kind}" for kind, count in result.failures.items())
        when = "interrupted before any kernel" if interrupted else "no kernel"
        print(f"tilewright: {when} was right ({failures or 'none ran'})", file=sys.stderr)
        raise typer.Exit(1)
    if interrupted:
        print("tilewright: interrupted; this is the best so far", file=sys.stderr)
