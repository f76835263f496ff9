"""Arguments and options that commands share, and what they are turned into."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spaces.workload import Workload


class Format(StrEnum):
    """How to print a result."""

    TABLE = "table"
    JSON = "json"


Operator = Annotated[
    str, typer.Argument(help="What to compute: an operator, such as matmul, or a program's text.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME=VALUE...", help="Its parameters, such as m=512 n=512 k=512."),
]
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


def parse_workload(operator: str, words: Sequence[str] | None) -> Workload:
    """The workload of an operator and ``name=value`` words; :class:`InputError` if malformed."""
    from spaces.operators import parameters_of, workload  # with NumPy

    return workload(operator, **parameters_of(words or ()))
