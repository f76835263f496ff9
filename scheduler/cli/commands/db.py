"""``tilewright db``: look after a database."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated

import typer

from tilewright.scheduler.cli.options import AnswerFormat, DatabaseName, Format
from tilewright.scheduler.cli.text import counted, say, without_passwords

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _db() -> None:
    """Look after a database: its size, unused space, merging others."""


@app.command("stats")
def stats_command(db: DatabaseName = "tuning.db", format: AnswerFormat = Format.TABLE) -> None:
    """Print counts of runs and records, and the size on disk."""
    from tilewright.measure.database import Database

    with Database(db, create=False) as database:
        found = database.stats()
    if format is Format.JSON:
        print(json.dumps(asdict(found)))
        return
    from tilewright.scheduler.cli.output import show_facts

    rows = [
        ("measurements", f"{found.measurements}, {found.failures} failed, {found.lost} lost"),
        ("workloads", str(found.workloads)),
        ("targets", str(found.targets)),
        ("pairs", f"{found.pairs} of a workload and a target"),
        ("runs", str(found.runs)),
        ("size", _mib(found.bytes)),
        ("schema", found.schema),
    ]
    show_facts(rows)


@app.command("vacuum")
def vacuum_command(db: DatabaseName = "tuning.db") -> None:
    """Return unused space to the disk. Running jobs may continue."""
    from tilewright.measure.database import Database

    with Database(db, create=False) as database:
        before = database.stats().bytes
        database.vacuum()
        after = database.stats().bytes
    print(f"{_mib(before)} before, {_mib(after)} now")


@app.command("merge")
def merge_command(
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="Databases: files or URLs.")
    ],
    into: Annotated[
        str, typer.Option("--into", help="The database that receives all; created if missing.")
    ],
) -> None:
    """Add all runs and records of some databases to another.

    Merging a database twice adds nothing new.

    \b
    Example:
      tilewright db merge laptop.db gpu-host.db --into postgresql://me@server/tuning
    """
    from tilewright.measure.database import Database

    with ExitStack() as stack:  # all can be read, or else nothing is made
        opened = [
            stack.enter_context(Database(source, create=False, report=say)) for source in sources
        ]
        database = stack.enter_context(Database(into))
        for source, found in zip(sources, opened, strict=True):
            merged = counted(database.merge(found), "new record")
            print(f"{merged} of {without_passwords(source)}")


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
