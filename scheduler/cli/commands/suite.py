"""``tilewright suite``: the shipped suites, and suites for somebody else to tune."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tilewright.scheduler.cli import completing
from tilewright.scheduler.cli.options import (
    AnswerFormat,
    DatabaseName,
    Format,
    TargetName,
    Threads,
)
from tilewright.scheduler.cli.text import counted, say, without_passwords

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

SuiteName = Annotated[
    str,
    typer.Argument(
        metavar="SUITE",
        help="A TOML file, or the name of a shipped suite.",
        autocompletion=completing.suites,
    ),
]


@app.callback()
def _suite() -> None:
    """List suites, and let somebody else tune one without its names."""


@app.command("list")
def list_command(format: AnswerFormat = Format.TABLE) -> None:
    """List the shipped suites: their workloads and sections."""
    from tilewright.scheduler.suites.suite import read_suite, shipped_suites

    found = {name: read_suite(name) for name in shipped_suites()}
    if format is Format.JSON:
        print(
            json.dumps(
                [
                    {
                        "name": name,
                        "title": suite.title,
                        "workloads": len(suite.members),
                        "sections": suite.sections,
                    }
                    for name, suite in found.items()
                ]
            )
        )
        return
    from tilewright.scheduler.cli.output import print_table

    rows = [
        (name, str(len(suite.members)), ", ".join(suite.sections) or "-", suite.title)
        for name, suite in found.items()
    ]
    print_table(("suite", "#workloads", "sections", "title"), rows)


@app.command("seal")
def seal_command(
    suite: SuiteName,
    out: Annotated[Path, typer.Option(help="The suite to write, such as sealed.toml.")],
    decoys: Annotated[
        int, typer.Option(min=0, max=4096, help="Workloads of no model that are mixed in.")
    ] = 0,
    target: TargetName = "cpu",
    threads: Threads = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Draw decoys and the order by a seed.", show_default="a new draw"),
    ] = None,
) -> None:
    """Write a suite for somebody who tunes it and shall not learn the model.

    The file has no names, counts or order, and decoys that differ from a workload in an extent. Ask
    for the records as JSON lines, by tilewright export, and match them here.

    \b
    Examples:
      tilewright suite seal mine.toml --out sealed.toml --decoys 20
      tilewright suite match mine.toml results.jsonl
    """
    from tilewright.scheduler.suites.sealing import sealed
    from tilewright.scheduler.suites.suite import read_suite
    from tilewright.scheduler.suites.writing import text_of
    from tilewright.spaces.target import detect_target
    from tilewright.spaces.validation.files import check_place, is_stream, output_file

    found = read_suite(suite)
    if not is_stream(out):
        check_place(out, "a suite")
    made = sealed(found, decoys, detect_target(target, threads), seed)
    with output_file(out, "a suite") as file:
        file.write(text_of(made).encode())
    if not is_stream(out):
        count = len(found.members)
        print(f"{counted(count, 'workload')} and {counted(decoys, 'decoy')} written to {out}")


@app.command("match")
def match_command(
    suite: SuiteName,
    results: Annotated[Path, typer.Argument(help="Records that tilewright export wrote there.")],
    db: DatabaseName = "tuning.db",
) -> None:
    """Add the records of the suite's workloads to the database, and leave those of decoys."""
    from tilewright.scheduler.suites.matching import match
    from tilewright.scheduler.suites.suite import read_suite

    found = read_suite(suite)
    matched = match(found, results, db, say)
    print(f"{counted(matched.added, 'new record')} in {without_passwords(db)}")
    print(f"{counted(matched.others, 'record')} of other workloads left aside")
    _tell_missing([member.label for member in matched.missing])


def _tell_missing(labels: Sequence[str]) -> None:
    for label in labels:
        print(f"no record of {label}")
