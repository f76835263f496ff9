"""Arguments and options that commands share, and what they are turned into."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How to print a result."""

    TABLE = "table"
    JSON = "json"


TargetName = Annotated[
    str, typer.Option("--target", help="cpu, cuda (the GPU here), or a named one: cuda:sm_90a.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Threads a CPU kernel may use.", show_default="1")
]
DatabaseName = Annotated[
    str, typer.Option("--db", help="The tuning database: a file, or an SQLAlchemy URL.")
]
Model = Annotated[Path, typer.Argument(help="A model that tilewright train wrote.")]
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", help="A model that tilewright train wrote, to rank schedules by."),
]
SearchName = Annotated[
    str,
    typer.Option(
        "--search",
        metavar="NAME",
        help="evolutionary (under a cost model), random, exhaustive, genetic, annealing or "
        "iterated-local.",
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="table: for people; json: each trial as a line of JSON.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print a line for each trial.")]
