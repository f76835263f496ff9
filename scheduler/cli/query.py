"""``tilewright query``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from scheduler.cli.options import (
    DatabaseName,
    Format,
    Operator,
    Parameters,
    TargetName,
    Threads,
    parse_workload,
)
from spaces.target import detect_target


def query_command(
    operator: Operator,
    parameters: Parameters = None,
    target: TargetName = "cpu",
    threads: Threads = None,
    db: DatabaseName = "tuning.db",
    source: Annotated[bool, typer.Option("--source", help="Print the kernel's source.")] = False,
    format: Annotated[Format, typer.Option(help="How to print the answer.")] = Format.TABLE,
) -> None:
    """Print the best schedule known, and whether it was measured, transferred or predicted."""
    workload = parse_workload(operator, parameters)
    machine = detect_target(target, threads)

    from scheduler.cli.output import console, facts, seconds
    from scheduler.query import Provenance, query

    answer = query(workload, machine, db)
    text = answer.space.lower(answer.schedule).text if source else None
    if format is Format.JSON:
        print(json.dumps(answer.to_json() | ({} if text is None else {"source": text})))
        return
    measured = answer.provenance is Provenance.MEASURED
    origin = str(answer.provenance)
    if answer.record is not None and not measured:
        origin += f" from {answer.record.workload}"
    latency = "-" if answer.latency is None else seconds(answer.latency)
    if not measured:
        latency += " (estimated)"
    console().print(
        facts(
            [
                ("workload", str(workload)),
                ("target", machine.summary),
                ("schedule", str(answer.schedule)),
                ("latency", latency),
                ("GFLOP/s", "-" if answer.gflops is None else f"{answer.gflops:.1f}"),
                ("provenance", origin),
                ("trials", str(answer.trials)),
            ]
        )
    )
    if text is not None:
        print(text)
