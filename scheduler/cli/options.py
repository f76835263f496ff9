"""Arguments and options that commands share, and what they are turned into."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tilewright.scheduler.cli import completing
from tilewright.scheduler.tuning.budget import Effort
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.schedule import LARGEST


class Format(StrEnum):
    """The form in which a result is printed."""

    TABLE = "table"
    JSON = "json"


AnswerFormat = Annotated[
    Format, typer.Option("--format", help="table: for people; json: one value.")
]
TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        help="cpu, cpu:threads=2, cuda (the GPU here), or a named one: cuda:sm_90a.",
        show_default="TILEWRIGHT_TARGET, [tool.tilewright], or cpu",
        autocompletion=completing.targets,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Threads a CPU kernel may use; 2 means --target cpu:threads=2.",
        show_default="1",
    ),
]
DatabaseName = Annotated[
    str,
    typer.Option(
        "--db",
        help="The tuning database: a file, or an SQLAlchemy URL.",
        show_default="TILEWRIGHT_DB, [tool.tilewright], or tuning.db",
    ),
]
ReportedWorkloads = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORKLOAD...",
        help="Operators, or workloads such as softmax r=64 c=100.",
        show_default="all of the database",
        autocompletion=completing.operators,
    ),
]
Model = Annotated[Path, typer.Argument(help="A model file that tilewright train wrote.")]
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", help="Rank schedules by this model of tilewright train."),
]
SearchName = Annotated[
    str,
    typer.Option(
        "--search",
        metavar="NAME",
        help="evolutionary (under a cost model), random, exhaustive, genetic, annealing or "
        "iterated-local.",
        autocompletion=completing.searches,
    ),
]
NumericsOption = Annotated[
    Numerics,
    typer.Option(
        "--numerics",
        help="strict, or fast: allow algorithms with weaker bounds on errors, such as Winograd's.",
    ),
]
SuiteFile = Annotated[
    str | None,
    typer.Option(
        "--suite",
        metavar="FILE",
        help="Tune the workloads of a TOML file, or of a shipped suite, such as bert-base.",
        autocompletion=completing.suites,
    ),
]
SectionName = Annotated[
    str | None,
    typer.Option(
        "--section",
        metavar="NAME",
        help="Tune one section of the suite, such as decode.",
        autocompletion=completing.sections,
    ),
]
EffortOption = Annotated[
    Effort,
    typer.Option(
        "--effort",
        help="32, 128 or 512 trials and 20, 60 or 300 seconds a workload, where no option says "
        "otherwise.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials",
        min=1,
        help="The largest number of schedules to measure.",
        show_default="128 a workload",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds", min=1, help="The largest wall time, in seconds.", show_default="60 a workload"
    ),
]
Patience = Annotated[
    int | None,
    typer.Option("--patience", min=1, help="Stop after so many trials without a gain."),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=LARGEST, help="Seed of the search's random numbers.")
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="table: for people; json: each trial as a line of JSON.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print a line for each trial.")]
