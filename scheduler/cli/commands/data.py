"""``tilewright export``, ``import`` and ``list``."""

from __future__ import annotations

import json
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli.options import AnswerFormat, DatabaseName, Format
from tilewright.scheduler.cli.text import counted, say, without_passwords
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.files import is_stream

if TYPE_CHECKING:
    from tilewright.measure.database import Database


class ExportFormat(StrEnum):
    """The format of exported records: lossless, or a table."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


TABLES = ("xlsx", "xls", "ods", "tsv", "feather", "arrow", "h5", "html", "pkl")
"""Endings of other formats, which JSON lines must not have."""


def export_command(
    file: Annotated[Path, typer.Argument(help="The file to write, or - for standard output.")],
    db: DatabaseName = "tuning.db",
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            help="jsonl: lossless, for import; or a table.",
            show_default="by the ending of FILE, or jsonl",
        ),
    ] = None,
    features: Annotated[
        bool,
        typer.Option(
            "--features",
            help="Add the features of cost models to a table, and a split of the workloads.",
        ),
    ] = False,
) -> None:
    """Write every record of the database to a file.

    csv and parquet are tables with a typed column for each decision. A data card in Markdown is
    written beside them, as FILE.md: it describes the columns and the origin of the rows. A pipe or
    standard output gets the records only.
    """
    from tilewright.measure.database import Database

    format = format or _by_ending(file)
    if format is ExportFormat.JSONL and features:
        raise InputError("--features is for tables: --format csv or parquet, not jsonl")
    with Database(db, create=False) as database:
        if format is ExportFormat.JSONL:
            _tell(file, f"{counted(database.export_jsonl(file), 'record')} written to {file}")
        else:
            _export_table(database, file, format, db, features)


def _by_ending(file: Path) -> ExportFormat:
    ending = file.suffix.removeprefix(".").lower()
    if ending in set(ExportFormat):
        return ExportFormat(ending)
    if ending in TABLES:
        allowed = ", ".join(f".{each}" for each in ExportFormat)
        raise InputError(f"{file.name} is of a format that is not written; allowed: {allowed}")
    return ExportFormat.JSONL


def _export_table(
    database: Database, file: Path, format: ExportFormat, db: str, features: bool
) -> None:
    from tilewright.scheduler.data.export import export_table

    source = without_passwords(db) if "://" in db else Path(db).name
    count, card = export_table(database, file, str(format), source, features)
    beside = f", and what they are to {card}" if card else ""
    _tell(file, f"{counted(count, 'record')} written to {file}{beside}")


def _tell(file: Path, outcome: str) -> None:
    """Print the outcome, unless the file is a stream: it may be standard output itself."""
    if not is_stream(file):
        print(outcome)


def import_command(
    file: Annotated[Path, typer.Argument(help="A file that tilewright export wrote.")],
    db: DatabaseName = "tuning.db",
) -> None:
    """Add the records of a file to the database, without those that it already has."""
    from tilewright.measure.database import Database
    from tilewright.measure.records.jsonl import numbered_lines

    if not file.is_file():  # before a database is made
        if file.exists():
            raise InputError(f"{file} is no regular file; allowed: an export, plain or gzip")
        raise InputError(f"there is no file {file}")
    with numbered_lines(file):  # or else refused, too
        pass
    with Database(db) as database:
        count = database.import_jsonl(file, say)
    print(f"{counted(count, 'new record')} in {without_passwords(db)}")


def list_command(
    db: DatabaseName = "tuning.db",
    sessions: Annotated[
        bool, typer.Option("--sessions", help="List the jobs instead, the latest last.")
    ] = False,
    format: AnswerFormat = Format.TABLE,
) -> None:
    """List the workloads and targets in the database, each with its best latency."""
    from tilewright.measure.database import Database

    with Database(db, create=False) as database:
        if sessions:
            from tilewright.scheduler.cli.commands.sessions import print_sessions

            print_sessions(database, format)
        else:
            _print_workloads(database, format)


def _print_workloads(database: Database, format: Format) -> None:
    summaries = database.summaries()
    if format is Format.JSON:
        print(json.dumps([summary.to_json() for summary in summaries]))
        return
    from tilewright.scheduler.cli.output import print_table, seconds
    from tilewright.scheduler.earlier import count_earlier, remark
    from tilewright.spaces.declared import is_of_earlier_version

    columns = ("workload", "target", "#trials", "#failures", "#best", "#GFLOP/s")
    rows = []
    for summary in summaries:
        best = summary.score
        rate = f"{summary.flops / best / 1e9:.1f}" if best and summary.flops else "-"
        figures = (seconds(best) if best else "-", rate)
        counts = (str(summary.trials), str(summary.failures))
        rows.append((summary.workload, summary.target.summary, *counts, *figures))
    print_table(columns, rows)
    targets = {summary.target.fingerprint: summary.target for summary in summaries}
    versions = database.versions()
    earlier = sum(
        count_earlier(versions.get(name, {}), partial(is_of_earlier_version, kind=target.kind))
        for name, target in targets.items()
    )
    if earlier:
        say(remark(earlier))
