"""``tilewright train`` and ``tilewright evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scheduler.cli.options import DatabaseName, Model


def train_command(
    db: DatabaseName = "tuning.db",
    out: Annotated[Path, typer.Option(help="Where to write the model.")] = Path("model.json"),
) -> None:
    """Train a cost model on everything in the database."""
    from measure.database import Database
    from scheduler.training import train

    with Database(db, create=False) as database:
        model = train(database, out)
    rows = sum(model.trained_on.values())
    groups = len(model.trained_on)
    print(f"{out}: {rows} schedules of {groups} workload{'s' if groups > 1 else ''}")


def evaluate_command(model: Model, db: DatabaseName = "tuning.db") -> None:
    """Print how well a model ranks the schedules of workloads held out from its training.

    Workloads that it was trained on are judged by a model that was not: retrained on all others,
    or, where there is no other, on four fifths of the workload's own schedules.
    """
    from measure.database import Database
    from scheduler.cli.output import percent, print_table
    from scheduler.training import evaluate

    with Database(db, create=False) as database:
        results = evaluate(model, database)
    columns = ("workload", "protocol", "#rows", "#pairwise", "#top-1", "#top-5", "#recall@1%")
    rows = [
        (
            result.workload,
            result.protocol,
            str(result.rows),
            percent(result.pairwise),
            percent(result.top1),
            percent(result.top5),
            percent(result.recall1),
        )
        for result in results
    ]
    print_table(columns, rows)
