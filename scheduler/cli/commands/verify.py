"""``tilewright verify``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.scheduler.cli.exit_codes import NO_KERNEL
from tilewright.scheduler.cli.options import (
    Format,
    TargetName,
    Threads,
)
from tilewright.scheduler.cli.text import counted, plain, say
from tilewright.scheduler.cli.workload_arguments import (
    Differentiated,
    GradientNames,
    Operator,
    Parameters,
    ProgramFile,
    SavedNames,
    SolvedNames,
    Tables,
    workload_from_arguments,
)
from tilewright.spaces.target import detect_target

if TYPE_CHECKING:
    from tilewright.scheduler.verification import Verdict


def verify_command(
    operator: Operator = None,
    parameters: Parameters = None,
    file: ProgramFile = None,
    gradient: GradientNames = None,
    saved: SavedNames = None,
    solved: SolvedNames = None,
    table: Tables = None,
    target: TargetName = "cpu",
    threads: Threads = None,
    schedules: Annotated[int, typer.Option(min=1, help="Random schedules to check.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of schedules and inputs.")] = 0,
    format: Annotated[Format, typer.Option(help="How to print the outcome.")] = Format.TABLE,
) -> None:
    """Check random schedules of every template against the float64 reference.

    Kernels of a named GPU, such as cuda:sm_90a, are emulated on the CPU, asynchrony included: no
    GPU is needed, and large shapes are shortened. Kernels of cpu and cuda run on the hardware. The
    exit code is 1 if any kernel is wrong, or none could be checked.

    \b
    Example:
      tilewright verify matmul m=100 n=70 k=50 epilogue="relu(x + bias[n])" --target cuda:sm_90a
    """
    differentiated = Differentiated(gradient, saved, solved)
    workload = workload_from_arguments(operator, parameters, file, differentiated, table)
    machine = detect_target(target, threads)

    from tilewright.scheduler.cli.output import print_table
    from tilewright.scheduler.limits import check_memory
    from tilewright.scheduler.verification import draw, emulable, emulate, measure
    from tilewright.spaces.registry import space_for

    emulated = ":" in target and machine.kind != "cpu"
    checked = emulable(workload) if emulated else workload
    check_memory(checked, machine)
    space = space_for(checked, machine)
    drawn = draw(space, schedules, seed)
    found = emulate(space, drawn, seed=seed) if emulated else measure(space, drawn)
    verdicts = _all(found, len(drawn), quiet=format is Format.JSON)
    if format is Format.JSON:
        outcome = {"workload": workload.to_json(), "checked": checked.to_json()}
        print(json.dumps(outcome | {"emulated": emulated} | _as_json(verdicts)))
    else:
        way = "emulated in eager, lazy and random order" if emulated else "run"
        if checked is not workload:
            print(f"{workload} is too large to emulate; checked with the same tails instead:")
        print(f"{checked} on {machine.summary}: {counted(len(verdicts), 'schedule')}, {way}")
        columns = ("template", "#schedules", "#right", "#refused", "#wrong")
        rows = [(name, *map(str, counts.values())) for name, counts in _counts(verdicts).items()]
        print_table(columns, rows)
        for verdict in _wrong(verdicts)[:1]:
            print(plain(f"first failure: {verdict.error_kind}: {verdict.error_text}"))
            print(f"  of {verdict.schedule}")
    raise typer.Exit(_code(verdicts))


def _all(found: Iterator[Verdict], count: int, quiet: bool) -> list[Verdict]:
    """Collect all verdicts, and print progress if that takes long."""
    from tilewright.scheduler.cli.display.lines import Lines

    verdicts: list[Verdict] = []
    lines = Lines(lambda: f"{len(verdicts)} of {count} schedules checked", quiet)
    lines.begin()
    try:
        verdicts += found
    finally:
        lines.end()
    return verdicts


def _code(verdicts: Sequence[Verdict]) -> int:
    """Return the exit code. Prints the reason if nothing could be checked."""
    if any(verdict.right for verdict in verdicts):
        return NO_KERNEL if _wrong(verdicts) else 0
    if not _wrong(verdicts):
        refusals = [verdict.error_text for verdict in verdicts] or ["no schedule was drawn"]
        say(f"nothing could be checked: {refusals[0]}")
    return NO_KERNEL


def _wrong(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.outcome == "wrong"]


def _counts(verdicts: Sequence[Verdict]) -> dict[str, dict[str, int]]:
    """Outcomes counted by template."""
    counts: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        row = counts.setdefault(
            verdict.schedule.template, {"schedules": 0, "right": 0, "refused": 0, "wrong": 0}
        )
        row["schedules"] += 1
        row[verdict.outcome] += 1
    return counts


def _as_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    failures = [
        {
            "schedule": verdict.schedule.to_json(),
            "error_kind": verdict.error_kind,
            "error_text": verdict.error_text,
        }
        for verdict in _wrong(verdicts)
    ]
    return {"templates": _counts(verdicts), "failures": failures}
