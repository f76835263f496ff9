"""``tilewright dispatch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.scheduler.cli.options import DatabaseName, Format, TargetName, Threads
from tilewright.scheduler.cli.sizes import described_from_arguments, show_table
from tilewright.scheduler.cli.workload_arguments import Operator, Parameters, ProgramFile
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import detect_target
from tilewright.spaces.validation.files import check_place, is_stream

EXAMPLE = "1:.3,2-8:.3,9-256:.3,257-4096:.1"


def dispatch_command(
    profile: Annotated[
        str,
        typer.Option(
            metavar="SIZES:SHARE,...",
            help=f"How often which sizes are called, such as {EXAMPLE}.",
            show_default=False,
        ),
    ],
    operator: Operator = None,
    parameters: Parameters = None,
    kernels: Annotated[int, typer.Option(help="The largest number of kernels.")] = 6,
    axis: Annotated[
        str | None,
        typer.Option(
            help="The axis whose size differs from call to call.",
            show_default="the one that is *, as in m=*, or m",
        ),
    ] = None,
    file: ProgramFile = None,
    target: TargetName = "cpu",
    threads: Threads = None,
    db: DatabaseName = "tuning.db",
    tune: Annotated[
        bool, typer.Option("--tune", help="Tune the kernels that the table needs first.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, help="Wall time of --tune.", show_default="60 a kernel"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The table to write, such as table.json.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option(help="A Python module to write, such as table.py.")
    ] = None,
    format: Annotated[Format, typer.Option(help="How to print the table.")] = Format.TABLE,
) -> None:
    """Serve all sizes of an axis by a few kernels, chosen for the least expected regret.

    Latencies are those of the database, and estimates where it has none. Shares of the profile are
    divided by their sum. All sizes up to its last one are served; the extent that the workload has
    along the axis does not matter. Regret is the loss against a kernel tuned for each size.

    \b
    Examples:
      tilewright dispatch matmul m=128 n=3072 k=768 --profile 1:.5,2-128:.5 --tune
      tilewright dispatch matmul m=* n=3072 k=768 --profile 1:.5,2-128:.5 --out table.json
      tilewright dispatch softmax r=64 c=1024 --axis r --profile 1-64:1 --python table.py
    """
    machine = detect_target(target, threads)
    for path in (out, python):
        if path is not None and not is_stream(path):
            check_place(path, "a table")
    if seconds is not None and not tune:
        raise InputError(f"--seconds {seconds:g} is for tuning; allowed with: --tune")
    described = described_from_arguments(operator, parameters, file)

    from tilewright.scheduler.dispatch.making import dispatch_table, tuned_table
    from tilewright.scheduler.dispatch.python_text import save_python

    about = (described, profile, db, kernels, axis, machine)
    if tune:
        table = tuned_table(*about, seconds, progress=format is Format.TABLE)
    else:
        table = dispatch_table(*about, kept=True)
    if out is not None:
        table.save(out)
    if python is not None:
        save_python(table, python)
    show_table(table, format)
