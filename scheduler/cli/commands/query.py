"""``tilewright query``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli.options import (
    DatabaseName,
    Format,
    ModelOption,
    NumericsOption,
    TargetName,
    Threads,
)
from tilewright.scheduler.cli.sizes import described_from_arguments, is_open, show_table
from tilewright.scheduler.cli.workload_arguments import (
    NEITHER,
    Differentiated,
    GradientNames,
    HeldNames,
    MemoryBytes,
    Operator,
    Parameters,
    ProgramFile,
    SavedNames,
    SolvedNames,
    Tables,
    workload_from_arguments,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.target import detect_target

if TYPE_CHECKING:
    from tilewright.scheduler.answer import Answer


def query_command(
    operator: Operator = None,
    parameters: Parameters = None,
    file: ProgramFile = None,
    gradient: GradientNames = None,
    saved: SavedNames = None,
    solved: SolvedNames = None,
    memory: MemoryBytes = None,
    held: HeldNames = None,
    table: Tables = None,
    target: TargetName = "cpu",
    threads: Threads = None,
    db: DatabaseName = "tuning.db",
    source: Annotated[
        bool, typer.Option("--source", help="Print the kernel's source only.")
    ] = False,
    model: ModelOption = None,
    numerics: NumericsOption = Numerics.STRICT,
    format: Annotated[Format, typer.Option(help="How to print the answer.")] = Format.TABLE,
) -> None:
    """Print the best schedule known, and whether it was measured, transferred or predicted.

    With --source standard output receives the kernel, as a file that compiles, and standard error
    the rest. Of a workload with an open axis, such as m=*, the table that serves it is printed.
    With --saved search it prints what a gradient may read of the forward pass, and what is fastest.

    \b
    Examples:
      tilewright query matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"
      tilewright query matmul m=512 n=512 k=512 --source > kernel.c
      tilewright query matmul m=* n=512 k=512
      tilewright query --file my.tw r=4096 c=1024
    """
    if is_open(operator, parameters):
        _check_of_one_kernel(
            {
                "--source": source,
                "--model": model,
                "--numerics": numerics is not Numerics.STRICT,
                "--gradient": gradient,
                "--saved": saved,
                "--solved": solved,
                "--memory": memory is not None,
                "--held": held,
                "--table": table or None,
            }
        )
        from tilewright.scheduler.dispatch.finding import found_table

        described = described_from_arguments(operator, parameters, file)
        show_table(found_table(described, detect_target(target, threads), db), format)
        return
    differentiated = Differentiated(gradient, saved, solved, memory, held)
    machine = detect_target(target, threads)
    if differentiated.is_searched:
        _check_of_one_kernel({"--source": source, "--model": model})
        from tilewright.scheduler.cli.gradient_plans import plans_on, show_plans

        made = workload_from_arguments(operator, parameters, file, NEITHER, table)
        show_plans(plans_on(made, differentiated, machine), machine, db, format)
        return
    workload = workload_from_arguments(operator, parameters, file, differentiated, table)

    from tilewright.scheduler.query import query

    answer = query(workload, machine, db, model, numerics)
    text = _source(answer) if source else None
    if format is Format.JSON:
        print(json.dumps(answer.to_json() | ({} if text is None else {"source": text})))
        return
    from tilewright.scheduler.cli.output import show_facts

    show_facts(_rows(answer), sys.stdout if text is None else sys.stderr)
    if text is not None:
        print(text, end="")


def _check_of_one_kernel(options: Mapping[str, object]) -> None:
    """Raise :class:`InputError` for an option that is given, as a table has no answer to it."""
    given = next((name for name, value in options.items() if value not in (None, False)), None)
    if given is not None:
        raise InputError(f"{given} is of one kernel; allowed: a size of each axis")


def _source(answer: Answer) -> str:
    from tilewright.scheduler.functions.source import source_file

    return source_file(answer)


def _rows(answer: Answer) -> list[tuple[str, str]]:
    from tilewright.scheduler.answer import Provenance
    from tilewright.scheduler.cli.output import estimated, seconds

    measured = answer.provenance is Provenance.MEASURED
    origin = str(answer.provenance)
    if answer.record is not None and not measured:
        origin += f" from {answer.record.workload}"
        if answer.record.target != answer.target:
            origin += f" on {answer.record.target.summary}"
    if answer.doubted:
        origin += ", doubted: a later run found it far slower"
    latency = "-" if answer.latency is None else seconds(answer.latency)
    if answer.estimate is not None:
        latency = estimated(answer.estimate, seconds)
    value, unit = answer.workload.rate(answer.latency or inf)
    return [
        ("workload", str(answer.workload)),
        ("target", answer.target.summary),
        ("schedule", str(answer.schedule)),
        ("numerics", str(answer.numerics)),
        *([("note", answer.note)] if answer.note else []),
        ("latency", latency if measured else f"{latency} (estimated)"),
        (unit, "-" if answer.latency is None else f"{value:.1f}"),
        ("provenance", origin),
        ("trials", str(answer.trials)),
        *([("the machine was busy", answer.busy)] if measured and answer.busy else []),
    ]
