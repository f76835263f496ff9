"""``tilewright extract``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.scheduler.cli.options import Format, TargetName, Threads
from tilewright.scheduler.cli.text import plain
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.target import detect_target
from tilewright.spaces.validation.files import check_place, is_stream, output_file

if TYPE_CHECKING:
    from tilewright.scheduler.torch.extraction.extraction import Extraction

NUMBER = re.compile("[0-9]{1,9}")
WEIGHT = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")

ModelFunction = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL.py:FUNCTION]",
        help="The function that returns the module and a tuple of its arguments.",
        show_default=False,
    ),
]
Configuration = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Take a model of the installed transformers: a type, such as llama, or a config.json.",
    ),
]
Context = Annotated[
    int | None,
    typer.Option(min=1, help="Tokens in the cache of --config when decoding.", show_default="1024"),
]
SuiteFile = Annotated[Path | None, typer.Option(help="The suite to write, such as suite.toml.")]
Title = Annotated[
    str | None, typer.Option(help="The title of the suite.", show_default="the model's name")
]
RowCounts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PHASE=N,N...",
        help="Call the function with rows=N, for decode or prefill; may be repeated. N:W weighs a "
        "number.",
    ),
]
DraftLengths = Annotated[
    str | None,
    typer.Option(
        metavar="N,N...",
        help="Decode speculatively: N tokens of a draft and one more are the rows of one. N:W "
        "weighs a number.",
    ),
]
Shards = Annotated[
    str | None,
    typer.Option(
        metavar="N,N...",
        help="Call the function with tp=N, in a process group of N ranks that stands for them.",
    ),
]
AsDtype = Annotated[
    str | None, typer.Option(help="Take all tensors of floating point for this dtype.")
]
InTraining = Annotated[
    bool, typer.Option("--training", help="Extract forward and backward, not inference.")
]
Frozen = Annotated[
    bool,
    typer.Option("--frozen", help="Take weights for constants, as Inductor's freezing does."),
]


def extract_command(
    model: ModelFunction = None,
    config: Configuration = None,
    context: Context = None,
    out: SuiteFile = None,
    title: Title = None,
    rows: RowCounts = None,
    draft: DraftLengths = None,
    tp: Shards = None,
    dtype: AsDtype = None,
    training: InTraining = False,
    frozen: Frozen = False,
    target: TargetName = "cpu",
    threads: Threads = None,
    format: Annotated[Format, typer.Option(help="How to print what is found.")] = Format.TABLE,
) -> None:
    """Write the workloads of a PyTorch model to a suite, for tilewright tune --suite.

    The model is captured, not run: its weights may be on the meta device. The file is code, and is
    executed. A configuration is data.

    \b
    Examples:
      tilewright extract model.py:block --out block.toml
      tilewright extract model.py:block --out block.toml --rows decode=1,8 --rows prefill=512
      tilewright extract --config llama --rows decode=1,8 --dtype bfloat16 --out llama.toml
      tilewright tune --suite block.toml --section decode --seconds 240
    """
    from tilewright.scheduler.extras import extra

    counts = _phases(rows or [])
    asked: dict[str, Any] = {"training": training, "title": title, "frozen": frozen}
    asked |= {"tp": _shards(tp), "draft": _draft(draft)}
    if out is not None and not is_stream(out):
        check_place(out, "a suite")
    extra("torch", "torch", "tilewright extract")
    from tilewright.scheduler.torch.extraction.extraction import extraction_of
    from tilewright.scheduler.torch.extraction.suite_file import suite_text

    machine = detect_target(target, threads)
    function = _function(model, config, context)
    found = extraction_of(function, (), counts or None, dtype, machine, **asked)
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

    print_table(("place", "section", "#weight", "#FLOPs", "#bytes", "workload"), _rows(found))
    put(f"in it: {percent(found.covered)} of the FLOPs of products, convolutions and attention")
    for (name, reason), count in found.left.items():
        put(f"left to PyTorch: {count} x {name}: {plain(reason)}")


def _function(model: str | None, config: str | None, context: int | None) -> Callable[..., Any]:
    """Return the function that makes the model."""
    if (model is None) == (config is None):
        both = "were given" if model else "are missing"
        raise InputError(f"MODEL.py:FUNCTION and --config {both}; allowed: one of them")
    if config is not None:
        from tilewright.scheduler.torch.extraction.configurations import Configured

        return Configured(config, context)
    if context is not None:
        raise InputError("--context is for a model of --config; a file's function has its own")
    from tilewright.scheduler.torch.extraction.model_file import model_function

    assert model is not None
    return model_function(model)


def _phases(given: Sequence[str]) -> dict[str, dict[int, float]]:
    """Return the numbers of rows by phase, with their weights."""
    found: dict[str, dict[int, float]] = {}
    for word in given:
        phase, equals, numbers = word.partition("=")
        counts = _numbers(numbers) if equals else None
        if counts is None:
            raise InputError(f"--rows {shown(word)}; allowed: such as decode=1,8,64")
        found.setdefault(phase, {}).update(counts)
    return found


def _draft(given: str | None) -> dict[int, float] | None:
    found = None if given is None else _numbers(given)
    if given is not None and found is None:
        raise InputError(f"--draft {shown(given)}; allowed: such as 3,7 or 3:0.4,7:0.6")
    return found


def _shards(given: str | None) -> list[int] | None:
    found = None if given is None else _numbers(given)
    if given is not None and (found is None or ":" in given):
        raise InputError(f"--tp {shown(given)}; allowed: such as 1,2,8")
    return None if found is None else list(found)


def _numbers(text: str) -> dict[int, float] | None:
    """Return the numbers with weights of such as ``1,8`` or ``1:0.3,8:0.7``; None of another
    text."""
    found: dict[int, float] = {}
    for part in text.split(","):
        number, colon, weight = part.partition(":")
        if not NUMBER.fullmatch(number) or not (WEIGHT.fullmatch(weight) if colon else True):
            return None
        found[int(number)] = float(weight) if colon else 1
    return found


def _rows(found: Extraction) -> list[tuple[str, ...]]:
    from tilewright.scheduler.cli.output import percent

    return [
        (
            each.name,
            section or "-",
            f"{weight:g}",
            *map(percent, found.shares(each, section)),
            str(each.workload),
        )
        for each in found.found
        for section, weight in each.sections.items()
    ]
