"""``tilewright pack``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tilewright.scheduler.cli.options import Format


def pack_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL_DIR", help="The folder of a checkpoint that GPTQ or AWQ quantised."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The new folder.")],
    format: Annotated[
        Format, typer.Option("--format", help="table: for people; json: a line for each layer.")
    ] = Format.TABLE,
) -> None:
    """Pack the weights of a quantised model once, for all kernels.

    The codes stay exactly what they are: NAME.qweight becomes NAME.codes, and zero points become
    NAME.zeros. It needs pip install 'tilewright[models]'.

    \b
    Example:
      tilewright pack llama-gptq --out llama-packed
    """
    from tilewright.scheduler.checkpoints import pack_checkpoint
    from tilewright.scheduler.cli.output import print_table

    rows = []
    for layer in pack_checkpoint(model, out):
        if format is Format.JSON:
            print(json.dumps(asdict(layer)), flush=True)
        size = f"{layer.bytes / (1 << 20):.2f}"
        rows.append((layer.name, layer.dtype, f"{layer.rows} x {layer.depth}", layer.group, size))
    if format is Format.TABLE:
        cells = [tuple(map(str, row)) for row in rows]
        print_table(("layer", "dtype", "rows x depth", "#group", "#MiB"), cells)
