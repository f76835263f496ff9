"""``tilewright extract``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli.options import Format, TargetName, Threads
from tilewright.scheduler.cli.text import plain
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.target import detect_target
from tilewright.spaces.validation.files import check_place, is_stream, output_file

if TYPE_CHECKING:
    from tilewright.scheduler.torch.extraction import Extraction

LONGEST = 9  # digits of a number of rows


ModelFunction = Annotated[
    str,
    typer.Argument(
        metavar="MODEL.py:FUNCTION",
        help="The function that returns the module and a tuple of its arguments.",
        show_default=False,
    ),
]
SuiteFile = Annotated[Path | None, typer.Option(help="The suite to write, such as suite.toml.")]
RowCounts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PHASE=N,N...",
        help="Call the function with rows=N, for decode or prefill; may be repeated.",
    ),
]
AsDtype = Annotated[
    str | None, typer.Option(help="Take all tensors of floating point for this dtype.")
]


def extract_command(
    model: ModelFunction,
    out: SuiteFile = None,
    rows: RowCounts = None,
    dtype: AsDtype = None,
    target: TargetName = "cpu",
    threads: Threads = None,
    format: Annotated[Format, typer.Option(help="How to print what is found.")] = Format.TABLE,
) -> None:
    """Write the workloads of a PyTorch model to a suite, for tilewright tune --suite.

    The model is captured, not run: its weights may be on the meta device. The file is code, and is
    executed.

    \b
    Examples:
      tilewright extract model.py:block --out block.toml
      tilewright extract model.py:block --out block.toml --rows decode=1,8 --rows prefill=512
      tilewright tune --suite block.toml --seconds 240
    """
    from tilewright.scheduler.extras import extra

    counts = _counts(rows or [])
    if out is not None and not is_stream(out):
        check_place(out, "a suite")
    extra("torch", "torch", "tilewright extract")
    from tilewright.scheduler.torch.extraction import extraction_of
    from tilewright.scheduler.torch.model_file import model_function
    from tilewright.scheduler.torch.suite_file import suite_text

    machine = detect_target(target, threads)
    found = extraction_of(model_function(model), (), counts or None, dtype, machine)
    if out is not None:
        with output_file(out, "a suite") as file:
            file.write(suite_text(found).encode())
    if format is Format.JSON:
        print(json.dumps(found.to_json()))
    else:
        _print(found)


def _print(found: Extraction) -> None:
    """Print the workloads that were found, and what is left to PyTorch."""
    from tilewright.scheduler.cli.output import percent, print_table, put

    print_table(("place", "#weight", "#FLOPs", "#bytes", "workload"), _rows(found))
    put(f"in it: {percent(found.covered)} of the FLOPs of products, convolutions and attention")
    for (name, reason), count in found.left.items():
        put(f"left to PyTorch: {count} x {name}: {plain(reason)}")


def _counts(given: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of rows by phase."""
    found: dict[str, list[int]] = {}
    for word in given:
        phase, equals, numbers = word.partition("=")
        parts = numbers.split(",")
        if not equals or not all(part.isdecimal() and len(part) <= LONGEST for part in parts):
            raise InputError(f"--rows {shown(word)}; allowed: such as decode=1,8,64")
        found.setdefault(phase, []).extend(map(int, parts))
    return found


def _rows(found: Extraction) -> list[tuple[str, ...]]:
    from tilewright.scheduler.cli.output import percent

    return [
        (each.name, str(each.weight), *map(percent, found.shares(each)), str(each.workload))
        for each in found.found
    ]
