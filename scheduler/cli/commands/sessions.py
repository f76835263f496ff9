"""``tilewright resume``, and what ``tilewright list --sessions`` prints."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli.executors import ExecutorName, Insecure
from tilewright.scheduler.cli.options import (
    DatabaseName,
    Format,
    FormatOption,
    ModelOption,
    Quiet,
    Verbose,
)

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.scheduler.cli.job import Request
    from tilewright.scheduler.data.selection import Selection
    from tilewright.scheduler.tuning.runs.sessions import Session, UnfinishedRun
    from tilewright.spaces.workloads.workload import Workload


def resume_command(
    context: typer.Context,
    session: Annotated[
        str, typer.Argument(help="The session's name, see tilewright list --sessions.")
    ],
    db: DatabaseName = "tuning.db",
    model: ModelOption = None,
    format: FormatOption = Format.TABLE,
    quiet: Quiet = False,
    verbose: Verbose = False,
    executor: Annotated[
        ExecutorName | None,
        typer.Option(help="Where to continue: local, or ray.", show_default="where it ran"),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="The Ray cluster to continue on.", show_default="where it ran"
        ),
    ] = None,
    insecure_cluster: Insecure = False,
) -> None:
    """Continue an interrupted or lost job with its remaining trials and seconds.

    It continues where it ran, or on other machines with the same hardware. Measured schedules are
    not measured again. Pass --model again if the job had one.

    \b
    Examples:
      tilewright resume 5f2c91ab
      tilewright resume 5f2c91ab --address 10.0.0.2:6379
    """
    from tilewright.measure.database import Database
    from tilewright.measure.tables.retries import waiting
    from tilewright.scheduler.cli.job import RunOptions, run_requests
    from tilewright.scheduler.cli.resuming import resumed_executors
    from tilewright.scheduler.tuning.runs.sessions import unfinished_runs

    with waiting(), Database(db, create=False) as database:
        undone = unfinished_runs(database, session)
    requests = [_request(unfinished, session) for unfinished in undone]
    run_options = RunOptions(db, model, format, quiet, verbose)
    with resumed_executors(session, undone, executor, address, insecure_cluster) as executors:
        raise typer.Exit(run_requests(requests, run_options, executors, context.obj))


def _request(unfinished: UnfinishedRun, session: str) -> Request:
    """Return the request that finishes a workload or a suite."""
    from tilewright.scheduler.cli.job import Request
    from tilewright.scheduler.strategies.registry import EVOLUTIONARY
    from tilewright.scheduler.suites.objective import Objective
    from tilewright.scheduler.tuning.runs.sessions import suite_of
    from tilewright.spaces.numerics.mode import Numerics, as_numerics

    run = unfinished.run
    what, objective = suite_of(unfinished) or (run.workload, Objective.LATENCY)
    search = str(run.configuration.get("search", EVOLUTIONARY))
    numerics = as_numerics(str(run.configuration.get("numerics", Numerics.STRICT)))
    return Request(
        what, run.target, unfinished.budget, run.seed, session, objective, search, numerics
    )


def print_sessions(
    database: Database, format: Format, selection: Selection, limit: int | None
) -> None:
    """Print the jobs in a database that are wanted, and their states; at most the latest few."""
    from tilewright.scheduler.tuning.runs.sessions import sessions

    wanted = [session for session in sessions(database) if _is_wanted(session, selection)]
    found, now = wanted[-(limit or 0) :], time.time()
    if format is Format.JSON:
        print(json.dumps([session.to_json(now) for session in found]))
        return
    from tilewright.scheduler.cli.output import print_table

    about = ("session", "~workload", "~~target", "?executor", "?#seed")
    columns = (*about, "started", "#lasted", "~state")
    print_table(columns, [_row(session, now) for session in found])


def _is_wanted(session: Session, selection: Selection) -> bool:
    since = selection.since
    return (since is None or session.heartbeat >= since) and any(
        selection.is_of(str(run.workload), run.target) for run in session.runs
    )


def _row(session: Session, now: float) -> tuple[str, ...]:
    from tilewright.scheduler.cli.output import clock, moment
    from tilewright.scheduler.tuning.runs.sessions import SessionState

    first, state = session.runs[0], session.state(now)
    more = f" and {len(session.runs) - 1} more" if len(session.runs) > 1 else ""
    words = {
        SessionState.RUNNING: "running",
        SessionState.LOST: f"lost, {_last_heard(now - session.heartbeat)}",
        SessionState.ENDED: f"ended: {session.reasons}",
    }
    lasted = clock(session.lasted)
    targets = "; ".join(dict.fromkeys(run.target.summary for run in session.runs))
    options = first.configuration
    ran = " ".join(str(options[name]) for name in ("executor", "address") if options.get(name))
    workload = f"{_for_people(first.workload)}{more}"
    about = (session.name, workload, targets, ran or "-", str(first.seed))
    return (*about, moment(session.started_at), lasted, words[state])


def _for_people(workload: Workload) -> str:
    """Return a workload's text; on a terminal without parameters that have their usual values."""
    if not sys.stdout.isatty():
        return str(workload)
    from tilewright.spaces.workloads.spelling import short_text

    return short_text(workload)


def _last_heard(ago: float) -> str:
    """Return the age of a session's last heartbeat, in words."""
    from tilewright.scheduler.cli.output import clock
    from tilewright.scheduler.tuning.runs.sessions import AHEAD

    if ago < -AHEAD:
        return f"its clock was {clock(-ago)} ahead"
    return f"last heard of {clock(max(0.0, ago))} ago"
