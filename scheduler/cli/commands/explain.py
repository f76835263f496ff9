"""``tilewright explain``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.scheduler.cli.options import Format, TargetName, Threads
from tilewright.scheduler.cli.workload_arguments import (
    ProgramFile,
    Tables,
    workload_from_arguments,
)
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.operators import workload as workload_of
from tilewright.spaces.settings import default_database
from tilewright.spaces.target import detect_target

if TYPE_CHECKING:
    from tilewright.scheduler.explaining import ModelExplained, WorkloadExplained
    from tilewright.spaces.target import Target
    from tilewright.spaces.workloads.workload import Workload

SHOWN_FEATURES = 20
SHOWN_RISKS = 8  # features that tell whether a schedule runs
TELLING = 0.005  # share of the variance from which on a decision is shown
FEW = 16  # schedules whose differences may be luck


def explain_command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL | OPERATOR NAME=VALUE...",
            help="A model that tilewright train wrote, or a workload of the database.",
            show_default=False,
        ),
    ] = None,
    file: ProgramFile = None,
    table: Tables = None,
    db: Annotated[
        str | None,
        typer.Option(
            "--db",
            help="The tuning database.",
            show_default="tuning.db for a workload, none for a model",
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Explain a model for this workload only.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the features of a model to a file .svg or .png.")
    ] = None,
    target: TargetName = "cpu",
    threads: Threads = None,
    format: Annotated[Format, typer.Option(help="How to print the answer.")] = Format.TABLE,
) -> None:
    """Explain a model by its features, or a workload by its measurements.

    For a model it prints how much each feature moves the predictions (SHAP values), over schedules
    of a database (--db), or over random ones of the workloads that it was trained on.

    For a workload it prints the decisions that separate fast schedules from slow ones, how many
    schedules each rule rejects, and how far the best is from the roof of each hardware level.

    \b
    Examples:
      tilewright explain model.json --plot model.svg
      tilewright explain matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"
    """
    words = what or []
    if file is None and len(words) == 1 and _is_model(words[0]):
        asked = None if workload is None else workload_of(workload)
        _explain_model(Path(words[0]), db, asked, plot, detect_target(target, threads), format)
    elif plot is not None or workload is not None:
        option = "--plot" if plot is not None else "--workload"
        given = " ".join(words) if file is None else str(file)
        raise InputError(f"{option} is for a model, not for {shown(given)}")
    else:
        asked = workload_from_arguments(words[0] if words else None, words[1:], file, tables=table)
        _explain_workload(asked, detect_target(target, threads), db or default_database(), format)


def _is_model(word: str) -> bool:
    """Return True if a word by itself is a model's file, not an operator's name or a program."""
    return Path(word).exists() or not (word.isidentifier() or " " in word.strip())


def _explain_model(
    path: Path,
    db: str | None,
    workload: Workload | None,
    plot: Path | None,
    target: Target,
    format: Format,
) -> None:
    from tilewright.scheduler.explaining import explain_model
    from tilewright.scheduler.opening import opened

    if plot is not None:
        from tilewright.scheduler.explanation_plot import check_plot

        check_plot(plot)
    with opened(db, create=False) if db is not None else nullcontext() as database:
        found = explain_model(path, target, database, workload)
    if format is Format.JSON:
        print(json.dumps({"model": str(path), **found.to_json()}))
    else:
        _print_model(path, found)
    if plot is not None:
        from tilewright.scheduler.explanation_plot import plot_explanation

        plot_explanation(found.speed, plot, _title(path, found))


def _explain_workload(workload: Workload, target: Target, db: str, format: Format) -> None:
    from tilewright.measure.database import Database
    from tilewright.scheduler.explaining import explain_workload

    with Database(db, create=False) as database:
        found = explain_workload(database, workload, target)
    if format is Format.JSON:
        print(json.dumps(found.to_json()))
    else:
        _print_workload(found)


def _title(path: Path, found: ModelExplained) -> str:
    count = len(found.workloads)
    of = found.workloads[0] if count == 1 else f"{count} workloads"
    return f"{path.name}: {found.schedules} {found.source}, of {of}"


def _print_model(path: Path, found: ModelExplained) -> None:
    from tilewright.scheduler.cli.text import plain

    said = found.to_json()
    print(plain(_title(path, found)))
    mean = f"{said['mean_prediction']:.3f}"
    print(f"score: the speed of a schedule that runs, of the fastest one's; the mean is {mean}")
    _print_features(said["features"], SHOWN_FEATURES, "score", "faster", "slower")
    if said["validity"] is not None:
        print("\nWhether a schedule builds, runs and is right:")
        risks = said["validity"]["features"]
        _print_features(risks, SHOWN_RISKS, "log-odds", "safer", "riskier")
    print(
        "A feature moves a prediction, up or down from the mean one, by its SHAP value; these are\n"
        "means of their sizes."
    )


def _print_features(
    features: Sequence[Mapping[str, Any]], most: int, what: str, *ways: str
) -> None:
    from tilewright.scheduler.cli.output import percent, print_table
    from tilewright.scheduler.cli.text import counted
    from tilewright.scheduler.explaining import in_words

    moving = [each for each in features if each["mean_absolute_contribution"] > 0]
    rows = [
        (
            each["feature"],
            f"{each['mean_absolute_contribution']:.4f}",
            percent(each["share"]),
            in_words(each["direction"], *ways),
            each["unit"],
            each["meaning"],
        )
        for each in moving[:most]
    ]
    columns = ("feature", f"#moves {what} by", "#share", "goes with", "unit", "what it is")
    print_table(columns, rows)
    if len(moving) > most:
        print(f"{counted(len(moving) - most, 'other feature')}, each of which moves it less.")


def _print_workload(found: WorkloadExplained) -> None:
    from tilewright.scheduler.cli.output import seconds
    from tilewright.scheduler.cli.text import plain

    print(plain(f"{found.workload} on {found.target.summary}"))
    kinds = ", ".join(f"{kind} {count}" for kind, count in found.failures.items())
    print(f"{found.ran} schedules ran, {found.failed} failed{f' ({kinds})' if kinds else ''}")
    _print_decisions(found)
    _print_rules(found)
    print(f"\nThe best takes {seconds(found.latency)}: {plain(str(found.schedule))}")
    _print_levels(found)


def _print_decisions(found: WorkloadExplained) -> None:
    from tilewright.scheduler.cli.output import percent, print_table, times
    from tilewright.scheduler.cli.text import counted

    print("\nWhat separates fast schedules from slow ones:")
    columns = (
        *("decision", "#explains", "fastest tenth chose", "#of it", "#of all"),
        *("#others take", "#schedules"),
    )
    rows = [
        (
            each.decision,
            percent(each.explained),
            str(each.value),
            percent(each.share_of_fastest),
            percent(each.share_of_all),
            times(each.slowdown),
            str(each.rows),
        )
        for each in found.decisions
        if each.explained >= TELLING
    ]
    print_table(columns, rows)
    if len(rows) < len(found.decisions):
        others = counted(len(found.decisions) - len(rows), "other decision")
        print(f"Less than 0.5 % each: {others}, made in more than one way.")
    print(
        "A decision explains that share of the variance of log latency. A search tries together\n"
        "what looked promising together: one decision may stand for another."
    )
    if found.ran < FEW:
        print(f"{counted(found.ran, 'schedule')} may differ by luck: tune with more --trials.")


def _print_rules(found: WorkloadExplained) -> None:
    from tilewright.scheduler.cli.output import percent, print_table

    print("\nWhat the rules reject of raw points, each decision drawn at random:")
    rows = []
    for template in found.rules:
        valid = percent(template.valid / template.drawn)
        rows.append((template.template, "(all rules kept)", valid, "-", "-"))
        rows += [
            (
                template.template,
                each.rule,
                percent(each.rejected / template.drawn),
                percent(each.alone / template.drawn),
                each.example,
            )
            for each in template.rules
        ]
    print_table(("template", "rule", "#points", "#by it alone", "for example"), rows)


def _print_levels(found: WorkloadExplained) -> None:
    from tilewright.costmodel.explaining.levels import MOST, nearest_roof
    from tilewright.scheduler.cli.output import percent, print_table, seconds

    rows = [
        (
            level.name,
            f"{level.amount:.4g} {level.unit}",
            f"{level.rate:.4g} {level.unit}/s",
            seconds(level.seconds),
            percent(level.share),
        )
        for level in found.levels
    ]
    print_table(("level", "#work", "#peak", "#least time", "#of its latency"), rows)
    if nearest := nearest_roof(found.levels):
        print(f"The nearest roof is that of {nearest.name}: {percent(nearest.share)}.")
    if any(level.share > MOST for level in found.levels):
        print(
            "Where more than the latency would go, arrays were nearer to the core when calls were\n"
            "timed, or the work is estimated too high."
        )
    if not found.peaks_measured:
        print("Peaks are nominal, from the description of the target; none was measured.")
