"""``tilewright bundle``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.scheduler.bundle import MIB, WHEELS, make_bundle


def bundle_command(
    out: Annotated[Path, typer.Argument(help="The folder to make.")],
    limit_mib: Annotated[
        float, typer.Option("--limit-mib", min=0, help="The largest size allowed, in MiB.")
    ] = 64.0,
    python: Annotated[str, typer.Option(help="Version of Python on the host.")] = "3.12",
    machine: Annotated[str, typer.Option(help="Processor of the host.")] = "x86_64",
    wheel: Annotated[
        list[str] | None,
        typer.Option(help=f"A wheel to pack; repeat for more; default: {', '.join(WHEELS)}."),
    ] = None,
) -> None:
    """Pack the sources and wheels for a host without a package registry into a folder.

    On that host, run.sh in the folder runs any command with them.
    """
    sizes = make_bundle(out, limit_mib, python, machine, wheel or WHEELS)
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{size / MIB:8.2f} MiB  {name}")
    print(f"{sum(sizes.values()) / MIB:8.2f} MiB in {out}; start commands with {out / 'run.sh'}")
