"""``tilewright export``, ``import`` and ``list``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scheduler.cli.options import DatabaseName
from scheduler.cli.text import say, without_passwords
from spaces.errors import InputError

if TYPE_CHECKING:
    from measure.database import Database


def export_command(
    file: Annotated[Path, typer.Argument(help="The file to write, in JSON lines.")],
    db: DatabaseName = "tuning.db",
) -> None:
    """Write every record of the database to a file."""
    from measure.database import Database

    with Database(db, create=False) as database:
        count = database.export_jsonl(file)
    print(f"{count} records written to {file}")


def import_command(
    file: Annotated[Path, typer.Argument(help="A file that tilewright export wrote.")],
    db: DatabaseName = "tuning.db",
) -> None:
    """Add the records of a file to the database; those that are there already are left out."""
    from measure.database import Database

    if not file.is_file():
        raise InputError(f"there is no file {file}")  # before a database is made
    with Database(db) as database:
        count = database.import_jsonl(file, say)
    print(f"{count} new records in {without_passwords(db)}")


def list_command(
    db: DatabaseName = "tuning.db",
    sessions: Annotated[
        bool, typer.Option("--sessions", help="Print the jobs instead, the latest last.")
    ] = False,
) -> None:
    """Print what the database knows: each workload and target, and how fast the best is."""
    from measure.database import Database
    from scheduler.cli.sessions import print_sessions

    with Database(db, create=False) as database:
        if sessions:
            print_sessions(database)
        else:
            _print_workloads(database)


def _print_workloads(database: Database) -> None:
    from scheduler.cli.output import print_table, seconds

    summaries = database.summaries()
    columns = ("workload", "target", "#trials", "#failures", "#best", "#GFLOP/s")
    rows = []
    for summary in summaries:
        best = summary.score
        figures = (
            (seconds(best), f"{summary.workload.flops / best / 1e9:.1f}") if best else ("-", "-")
        )
        counts = (str(summary.trials), str(summary.failures))
        rows.append((str(summary.workload), summary.target.summary, *counts, *figures))
    print_table(columns, rows)
