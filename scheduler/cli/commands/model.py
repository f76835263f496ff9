"""``tilewright train`` and ``tilewright evaluate``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.costmodel.evaluating.parts import Split
from tilewright.scheduler.cli.options import DatabaseName, Format, Model
from tilewright.scheduler.cli.text import counted

if TYPE_CHECKING:
    from tilewright.costmodel.evaluating.evaluation import Evaluation, Figure
    from tilewright.scheduler.training import Training


def train_command(
    db: DatabaseName = "tuning.db",
    out: Annotated[Path, typer.Option(help="Where to write the model.")] = Path("model.json"),
    format: Annotated[Format, typer.Option(help="How to print the report.")] = Format.TABLE,
) -> None:
    """Train a cost model on everything in the database.

    The report describes the training data, and how well models trained on other workloads rank each
    workload's schedules. tilewright evaluate explains the figures.
    """
    from tilewright.measure.database import Database
    from tilewright.scheduler.training import train

    with Database(db, create=False) as database:
        report = train(database, out)
    if format is Format.JSON:
        print(json.dumps({"model": str(out), **report.to_json()}))
    else:
        print("\n".join(_learned(out, report)))
        if report.quality is None:
            print("How good it is, is not known: no two schedules of a workload differ in speed.")
        else:
            _print_figures(report.quality)


def evaluate_command(
    model: Model,
    db: DatabaseName = "tuning.db",
    split: Annotated[
        Split, typer.Option(help="Hold out whole workloads, operators or devices.")
    ] = Split.WORKLOAD,
    format: Annotated[Format, typer.Option(help="How to print the figures.")] = Format.TABLE,
) -> None:
    """Print how well a model ranks the schedules of workloads held out from its training.

    A workload that the model was trained on (or its operator or device, see --split) is judged by a
    new model, trained on the others. For a lone workload it is trained on four fifths of the
    schedules. Intervals hold the mean of all such workloads with a probability of 95 %.
    """
    from tilewright.measure.database import Database
    from tilewright.scheduler.training import evaluate

    with Database(db, create=False) as database:
        found = evaluate(model, database, split)
    if format is Format.JSON:
        print(json.dumps(found.to_json()))
    else:
        _print_parts(found)
        print()
        _print_figures(found)


def _learned(out: Path, report: Training) -> Iterator[str]:
    """Yield the lines that describe a model's training data."""
    from tilewright.scheduler.cli.text import plain

    schedules = counted(report.schedules, "schedule")
    workloads = counted(report.workloads, "workload")
    yield f"{out}: trained on {schedules} of {workloads}, of which {report.failures} failed"
    if report.skipped:
        yield f"{counted(report.skipped, 'more schedule')} left out: in their spaces no longer"
    yield plain(f"operators: {', '.join(report.operators)}")
    yield plain(f"devices: {', '.join(report.devices)}")


def _print_parts(found: Evaluation) -> None:
    from tilewright.scheduler.cli.output import percent, print_table

    names = list(found.figures)
    columns = (str(found.split), "protocol", "#schedules", *(f"#{name}" for name in names))
    rows = [
        (
            part.name,
            part.protocol,
            str(part.rows),
            *(percent(part.figures.get(name)) for name in names),
        )
        for part in found.parts
    ]
    print_table(columns, rows)


def _print_figures(found: Evaluation) -> None:
    from tilewright.costmodel.evaluating.metrics import METRICS
    from tilewright.scheduler.cli.output import print_table

    columns = ("figure", "#mean", "95 % interval", f"#{found.split}s", "what it is")
    rows = [
        (metric.name, *_shown(found.figures[metric.name]), metric.meaning)
        for metric in METRICS
        if metric.name in found.figures
    ]
    meaning = "pairs that the roofline, which needs no data, predicts in the right order"
    rows.append(("pairwise, roofline", *_shown(found.roofline), meaning))
    print_table(columns, rows)
    for name, words in found.protocols.items():
        print(f"{name}: {words}")
    for sentence in found.left_out:
        print(sentence)
    print(found.verdict)


def _shown(figure: Figure) -> tuple[str, str, str]:
    from tilewright.scheduler.cli.output import percent

    low_high = figure.interval
    between = "-" if low_high is None else f"{percent(low_high[0])} to {percent(low_high[1])}"
    return percent(figure.mean), between, str(figure.parts)
