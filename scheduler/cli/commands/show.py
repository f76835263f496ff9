"""``tilewright show``, ``tilewright operators`` and ``tilewright targets``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.scheduler.cli.options import AnswerFormat, Format, TargetName, Threads
from tilewright.scheduler.cli.workload_arguments import (
    Differentiated,
    GradientNames,
    Operator,
    Parameters,
    ProgramFile,
    SavedNames,
    SolvedNames,
    Tables,
    extents_of,
    program_text,
    with_tables_of,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import parameters_of

ScheduleText = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Say where the kernel of this schedule keeps its arrays: template: name=value ... "
        "Decisions left out are predicted.",
    ),
]

if TYPE_CHECKING:
    from tilewright.spaces.language import Program
    from tilewright.spaces.schedule import Schedule
    from tilewright.spaces.space import Space
    from tilewright.spaces.target import Target
    from tilewright.spaces.workloads.workload import Workload


def show_command(
    operator: Operator = None,
    parameters: Parameters = None,
    file: ProgramFile = None,
    gradient: GradientNames = None,
    saved: SavedNames = None,
    solved: SolvedNames = None,
    table: Tables = None,
    schedule: ScheduleText = None,
    source: Annotated[
        bool, typer.Option("--source", help="Print the kernel of --schedule only.")
    ] = False,
    target: TargetName = "cpu",
    threads: Threads = None,
) -> None:
    """Print an operator's program, facts derived from it, and the templates that serve it.

    With --schedule and --source standard output receives the kernel of this schedule, as a file
    that compiles.

    \b
    Examples:
      tilewright show layernorm r=4096 c=1024
      tilewright show "y[r, c] = softmax[c](x[r, c])" r=4096 c=1024 dtype=bfloat16
      tilewright show --file my.tw r=4096 c=1024
      tilewright show layernorm r=4096 c=1024 --gradient x,weight --saved mean,rstd
      tilewright show matmul m=512 n=512 k=512 --schedule "contraction: tile_rows=6" --source
    """
    if source and schedule is None:
        raise InputError("--source prints the kernel of a schedule; allowed with: --schedule")
    from tilewright.spaces.derivation.constants import without_constants

    made = Differentiated(gradient, saved, solved).program(
        _program(operator, parameters or [], file)
    )
    made = without_constants(with_tables_of(made, table))

    from tilewright.scheduler.cli.output import put
    from tilewright.spaces.target import detect_target
    from tilewright.spaces.workloads.served import workload_of

    machine = detect_target(target, threads)
    workload = workload_of(made)
    if source and schedule is not None:
        from tilewright.scheduler.functions.source import file_of_schedule

        put(file_of_schedule(*_in_space(workload, machine, schedule)).rstrip("\n"))
        return
    put("\n".join(_facts(made, workload, machine)))
    if schedule is not None:
        put("\n".join(["", *_layouts(*_in_space(workload, machine, schedule))]))


def _facts(made: Program, workload: Workload, target: Target) -> Iterator[str]:
    """Yield a program, what is derived from it, and each template with what it says of it."""
    from tilewright.spaces.derivation.facts import describe
    from tilewright.spaces.numerics.mode import Numerics
    from tilewright.spaces.workloads.served import served

    yield from (str(made), "", f"identity: {made.digest}", "", *describe(made).lines, "")
    yield f"templates on {target.summary}:"
    for template, reason in served(made, target):
        is_fast = template.numerics_of(workload) is Numerics.FAST
        serves = "serves it with numerics=fast" if is_fast else "serves it"
        yield f"  {template.name}: {reason or serves}"


def _in_space(workload: Workload, target: Target, text: str) -> tuple[Space, Schedule]:
    """Return the space of a workload and the schedule that ``text`` writes, completed."""
    from tilewright.scheduler.predictions import completed
    from tilewright.spaces.registry import space_for
    from tilewright.spaces.schedule import Schedule

    space = space_for(workload, target)
    return space, completed(space, Schedule.from_text(text))


def _layouts(space: Space, schedule: Schedule) -> Iterator[str]:
    """Yield where the kernel of a schedule keeps its arrays."""
    yield f"layouts of {schedule}:"
    found = [f"  {line}" for line in space.templates[schedule.template].layouts(schedule)]
    yield from found or [f"  {schedule.template} does not tell"]


def operators_command(format: AnswerFormat = Format.TABLE) -> None:
    """List the named operators, with an example each."""
    from tilewright.spaces.named import named, names

    found = [named(name) for name in names()]
    rows = [(o.name, o.summary, f"tilewright show {o.name} {o.example}") for o in found]
    if format is Format.JSON:
        keys = ("name", "summary", "example")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows]))
        return
    from tilewright.scheduler.cli.output import print_table

    print_table(("operator", "what it gives", "example"), rows)


def targets_command(format: AnswerFormat = Format.TABLE) -> None:
    """List the named targets, the hardware they mean here, and an example each."""
    from tilewright.spaces.target import target_names

    found = {name: _target(name) for name in target_names()}
    if format is Format.JSON:
        print(json.dumps([{"name": name, **_described(it)} for name, it in found.items()]))
        return
    from tilewright.scheduler.cli.output import print_table

    rows = [
        (name, it, "")
        if isinstance(it, str)
        else (name, it.summary, f"tilewright show matmul m=512 n=512 k=512 --target {name}")
        for name, it in found.items()
    ]
    print_table(("target", "what it is", "example"), rows)


def _target(name: str) -> Target | str:
    """Detect the target called ``name``, or return the reason why this machine has none."""
    from tilewright.spaces.target import detect_target

    try:
        return detect_target(name)
    except InputError as reason:
        return str(reason).partition(" (")[0]


def _described(target: Target | str) -> dict[str, Any]:
    if isinstance(target, str):
        return {"target": None, "reason": target}
    return {"target": target.to_json(), "reason": None}


def _program(operator: str | None, words: list[str], file: Path | None) -> Program:
    """Read the program that the command line names: an operator, a program's text, or a file."""
    from tilewright.spaces.language import program
    from tilewright.spaces.named import operator as named_operator

    if file is not None:
        return program(program_text(file), **extents_of(operator, words))
    if operator is None:
        raise InputError("no operator is given; allowed: a name, a program's text, or --file")
    if operator.isidentifier():
        return named_operator(operator, **parameters_of(words))
    return program(operator, **parameters_of(words))
