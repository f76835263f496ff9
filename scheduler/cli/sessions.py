"""``tilewright resume``, and what ``tilewright list --sessions`` prints."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import DatabaseName, Format, FormatOption, ModelOption, Quiet, Verbose
from scheduler.cli.tune import Request, carry_out

if TYPE_CHECKING:
    from measure.database import Database
    from scheduler.sessions import Rest, Session


def resume_command(
    session: Annotated[str, typer.Argument(help="Its name, see tilewright list --sessions.")],
    db: DatabaseName = "tuning.db",
    model: ModelOption = None,
    format: FormatOption = Format.TABLE,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Go on with a job that was interrupted or lost, with what is left of its trials and seconds.

    What it measured is not measured again. A model that led it has to be given again.

    \b
    Example:
      tilewright resume 5f2c91ab
    """
    from measure.database import Database
    from scheduler.sessions import rests

    with Database(db, create=False) as database:
        undone = rests(database, session)
    how = (db, model, format, quiet, verbose)
    raise typer.Exit(max([_go_on(rest, session, *how) for rest in undone]))


def _go_on(rest: Rest, session: str, *how: Any) -> int:
    """Tune what is left of a workload or a suite; the exit code."""
    from scheduler.sessions import suite_of, target_here

    run, target, left = rest.run, target_here(rest.run), rest.budget
    if found := suite_of(rest):
        from scheduler.cli.suite import SuiteRequest, carry_out_suite

        return carry_out_suite(SuiteRequest(*found, target, left, run.seed, session), *how)
    budget = (left.trials, left.seconds, left.patience)
    return carry_out(Request(run.workload, target, *budget, run.seed, session), *how)


def print_sessions(database: Database) -> None:
    """Print the jobs that a database knows, and what became of them."""
    from scheduler.cli.output import print_table
    from scheduler.sessions import sessions

    columns = ("session", "workload", "target", "#seed", "started", "#lasted", "state")
    now = time.time()
    print_table(columns, [_row(session, now) for session in sessions(database)])


def _row(session: Session, now: float) -> tuple[str, ...]:
    from scheduler.cli.output import clock, moment
    from scheduler.sessions import State

    first, state = session.runs[0], session.state(now)
    more = f" and {len(session.runs) - 1} more" if len(session.runs) > 1 else ""
    words = {
        State.RUNNING: "running",
        State.LOST: f"lost, last heard of {clock(now - session.heartbeat)} ago",
        State.ENDED: f"ended: {session.reasons}",
    }
    lasted = clock(session.heartbeat - session.started_at)
    about = (session.name, f"{first.workload}{more}", first.target.summary, str(first.seed))
    return (*about, moment(session.started_at), lasted, words[state])
