"""Options of commands that show some of a database only."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.scheduler.cli import completing

OfOperator = Annotated[
    str | None,
    typer.Option(
        "--operator",
        metavar="NAME",
        help="Only this operator's; program: those without a name.",
        autocompletion=completing.operators,
    ),
]
OnTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TEXT",
        help="Only of targets with this name or text in their description, such as cuda or EPYC.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Only what was measured since: 2026-11-28, 12h, 3d, 2w."
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="The largest number of rows.")]
