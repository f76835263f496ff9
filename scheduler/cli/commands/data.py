"""``tilewright export``, ``import`` and ``list``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.scheduler.cli.options import AnswerFormat, DatabaseName, Format
from tilewright.scheduler.cli.selecting import Limit, OfOperator, OnTarget, Since
from tilewright.scheduler.cli.text import counted, say, without_passwords
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.files import is_stream

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.tables.summary import Summary
    from tilewright.scheduler.data.selection import Selection


class ExportFormat(StrEnum):
    """The format of exported records: lossless, a table, a data set, or that of another tuner."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    DATASET = "dataset"
    KERNEL_TUNER = "kernel-tuner"
    T4 = "t4"


FOLDERS = (ExportFormat.DATASET, ExportFormat.KERNEL_TUNER, ExportFormat.T4)
ENDINGS = ("jsonl", "csv", "parquet")
"""Endings of files that choose a format."""
TABLES = ("xlsx", "xls", "ods", "tsv", "feather", "arrow", "h5", "html", "pkl")
"""Endings of other formats, which JSON lines must not have."""


ExportedFile = Annotated[Path, typer.Argument(help="The file to write, or - for standard output.")]
FormatOption = Annotated[
    ExportFormat | None,
    typer.Option(
        help="jsonl: lossless, for import; csv, parquet: a table; dataset: a folder as the Hugging "
        "Face hub has it; kernel-tuner, t4: files of other tuners.",
        show_default="by the ending of FILE, or jsonl",
    ),
]
WithFeatures = Annotated[
    bool,
    typer.Option(
        "--features",
        help="Add the features of cost models to a table, and a split of the workloads.",
    ),
]
OnlyFailed = Annotated[
    bool, typer.Option("--failed", help="Only failed attempts, each with its reason.")
]
SortColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Sort a table by a column, such as latency_s, the least first."
    ),
]
MostRecords = Annotated[
    int | None,
    typer.Option(min=1, help="At most so many: the first by --sort, or else the newest."),
]


def export_command(
    file: ExportedFile,
    db: DatabaseName = "tuning.db",
    format: FormatOption = None,
    features: WithFeatures = False,
    operator: OfOperator = None,
    on_target: OnTarget = None,
    since: Since = None,
    failed: OnlyFailed = False,
    sort: SortColumn = None,
    limit: MostRecords = None,
) -> None:
    """Write the records of the database to a file: all, or those that the options select.

    csv and parquet are tables with a typed column for each decision. A data card in Markdown is
    written beside them, as FILE.md: it describes the columns and the origin of the rows. A pipe or
    standard output gets the records only. dataset makes a folder of a card and Parquet files.
    kernel-tuner and t4 make a file for each workload, target and template in a folder, or one file
    whose name ends in .json.

    \b
    Examples:
      tilewright export log.jsonl
      tilewright export spaces --format kernel-tuner --operator matmul
      tilewright export fastest.csv --operator matmul --sort latency_s --limit 100
      tilewright export - --format csv --failed --since 3d
    """
    from tilewright.measure.database import Database
    from tilewright.scheduler.data.selection import Selection, moment_of

    format = format or _by_ending(file)
    _check_options(format, features, sort, limit)
    if format in FOLDERS and is_stream(file):
        raise InputError(f"--format {format} writes files; allowed: a folder, not {file}")
    selection = Selection(operator, on_target, moment_of(since), failed)
    with Database(db, create=False) as database:
        if format is ExportFormat.JSONL:
            _export_lines(database, file, selection, limit)
        elif format is ExportFormat.DATASET:
            from tilewright.scheduler.data.dataset import export_dataset

            count = export_dataset(database, file, _source(db), features, selection)
            print(f"{counted(count, 'record')} and a card written to {file}")
        elif format in FOLDERS:
            from tilewright.scheduler.data.tuners import export_kernels

            known, count = export_kernels(database, file, str(format), selection)
            print(f"{counted(count, 'schedule')} of {counted(known, 'kernel')} written to {file}")
        else:
            about = (_source(db), features, selection, sort, limit)
            _export_table(database, file, format, *about)


def _check_options(
    format: ExportFormat, features: bool, sort: str | None, limit: int | None
) -> None:
    """Raise :class:`InputError` for an option that a format does not have."""
    tables = (ExportFormat.CSV, ExportFormat.PARQUET)
    if features and format not in (*tables, ExportFormat.DATASET):
        allowed = "csv or parquet or dataset"
        raise InputError(f"--features is for tables: --format {allowed}, not {format}")
    if sort is not None and format not in tables:
        raise InputError(f"--sort is for tables: --format csv or parquet, not {format}")
    if limit is not None and format not in (*tables, ExportFormat.JSONL):
        raise InputError(f"--limit is for records: --format jsonl, csv or parquet, not {format}")


def _by_ending(file: Path) -> ExportFormat:
    ending = file.suffix.removeprefix(".").lower()
    if ending in ENDINGS:
        return ExportFormat(ending)
    if ending in TABLES:
        allowed = ", ".join(f".{each}" for each in ENDINGS)
        raise InputError(f"{file.name} is of a format that is not written; allowed: {allowed}")
    return ExportFormat.JSONL


def _export_lines(database: Database, file: Path, selection: Selection, limit: int | None) -> None:
    """Write the selected records, and the runs that they belong to, as lines of JSON."""
    from tilewright.measure.records.jsonl import write_lines
    from tilewright.scheduler.data.selection import EVERYTHING

    if limit is not None:
        selection = selection.newest(database, limit)
    if selection == EVERYTHING:
        count = database.export_jsonl(file)
    else:
        count = write_lines(file, selection.runs(database), selection.records(database))
    _tell(file, f"{counted(count, 'record')} written to {file}")


def _source(db: str) -> str:
    """Return the name of the database for a data card."""
    return without_passwords(db) if "://" in db else Path(db).name


def _export_table(database: Database, file: Path, format: ExportFormat, *about: Any) -> None:
    """Write a table; ``about`` are further arguments of ``export_table``."""
    from tilewright.scheduler.data.export import export_table

    count, card = export_table(database, file, str(format), *about)
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


class Order(StrEnum):
    """The order in which workloads are listed."""

    WORKLOAD = "workload"
    TRIALS = "trials"
    FAILURES = "failures"
    BEST = "best"
    RATE = "rate"


def list_command(
    db: DatabaseName = "tuning.db",
    sessions: Annotated[
        bool, typer.Option("--sessions", help="List the jobs instead, the latest last.")
    ] = False,
    operator: OfOperator = None,
    on_target: OnTarget = None,
    since: Since = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only workloads with failed attempts.")
    ] = False,
    sort: Annotated[
        Order,
        typer.Option(help="The order: best, the fastest first; of other figures, the largest."),
    ] = Order.WORKLOAD,
    limit: Limit = None,
    format: AnswerFormat = Format.TABLE,
) -> None:
    """List the workloads and targets in the database, each with its best latency.

    A terminal shows what fits its width; pipes, and --format json, get everything.

    \b
    Examples:
      tilewright list --operator matmul --sort rate --limit 10
      tilewright list --since 3d --failed
    """
    from tilewright.measure.database import Database
    from tilewright.scheduler.data.selection import Selection, moment_of

    selection = Selection(operator, on_target, moment_of(since), failed)
    if sessions and (failed or sort is not Order.WORKLOAD):
        raise InputError("--failed and --sort are for workloads; allowed with --sessions: others")
    with Database(db, create=False) as database:
        if sessions:
            from tilewright.scheduler.cli.commands.sessions import print_sessions

            print_sessions(database, format, selection, limit)
        else:
            found = _sorted(_summaries(database, selection), sort)[:limit]
            _print_workloads(database, found, format)


def _summaries(database: Database, selection: Selection) -> list[Summary]:
    """Return the summaries of a database that are wanted."""
    return [
        summary
        for summary in database.summaries(selection.since)
        if selection.is_of(summary.workload, summary.target)
        and (summary.failures or not selection.failed)
    ]


def _sorted(summaries: list[Summary], order: Order) -> list[Summary]:
    """Return the summaries in this order, those last that lack the figure."""
    keys: dict[Order, Callable[[Summary], float]] = {
        Order.TRIALS: lambda summary: -summary.trials,
        Order.FAILURES: lambda summary: -summary.failures,
        Order.BEST: lambda summary: summary.score or inf,
        Order.RATE: lambda summary: -summary.flops / (summary.score or inf),
    }
    return sorted(summaries, key=keys[order]) if order in keys else summaries


def _print_workloads(database: Database, summaries: Sequence[Summary], format: Format) -> None:
    if format is Format.JSON:
        print(json.dumps([summary.to_json() for summary in summaries]))
        return
    from tilewright.scheduler.cli.output import print_table

    columns = ("~workload", "~~target", "#trials", "#failures", "#best", "?#GFLOP/s")
    print_table(columns, [_row(summary) for summary in summaries])
    _warn_of_earlier(database, summaries)


def _row(summary: Summary) -> tuple[str, ...]:
    from tilewright.scheduler.cli.output import seconds

    best = summary.score
    rate = f"{summary.flops / best / 1e9:.1f}" if best and summary.flops else "-"
    counts = (str(summary.trials), str(summary.failures))
    figures = (seconds(best) if best else "-", rate)
    return (_text_for_people(summary.workload), summary.target.summary, *counts, *figures)


def _text_for_people(text: str) -> str:
    """Return a workload's text; on a terminal without parameters that have their usual values."""
    if not sys.stdout.isatty():
        return text
    from tilewright.spaces.operators import workload  # with NumPy
    from tilewright.spaces.workloads.spelling import short_text

    try:
        return short_text(workload(text))
    except InputError:  # it was measured by a version that knew other operators
        return text


def _warn_of_earlier(database: Database, summaries: Sequence[Summary]) -> None:
    """Say how many records are of earlier versions of their templates."""
    from tilewright.scheduler.earlier_versions import count_earlier, note_on_earlier
    from tilewright.spaces.declared_versions import is_of_earlier_version

    targets = {summary.target.fingerprint: summary.target for summary in summaries}
    versions = database.versions()
    earlier = sum(
        count_earlier(versions.get(name, {}), partial(is_of_earlier_version, kind=target.kind))
        for name, target in targets.items()
    )
    if earlier:
        say(note_on_earlier(earlier))
