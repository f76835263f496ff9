"""Command lines about all sizes of an axis: the workload that they name, and the table printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.workload_arguments import extents_of, program_text
from tilewright.spaces.errors import InputError

if TYPE_CHECKING:
    from tilewright.scheduler.dispatch.table import Table


def is_open(operator: str | None, words: Sequence[str] | None) -> bool:
    """Tell whether an axis is left open, as in ``m=*``."""
    given = [*(operator or "").split(), *(words or ())]
    return any(word.endswith("=*") for word in given)


def described_from_arguments(
    operator: str | None, words: Sequence[str] | None, file: Path | None
) -> tuple[str, dict[str, object]]:
    """Return the operator, or the text of a program, and its parameters."""
    from tilewright.spaces.operators import parameters_of  # with NumPy

    if file is not None:
        return program_text(file), dict(extents_of(operator, words))
    if operator is None:
        raise InputError("Missing argument 'OPERATOR', or --file")
    if not words:  # all of it may be one word
        from tilewright.scheduler.dispatch.family import described

        return described(operator)
    return operator, parameters_of(words)


def show_table(table: Table, format: Format) -> None:
    """Print a dispatch table."""
    if format is Format.JSON:
        print(json.dumps(table.to_json()))
        return
    from tilewright.scheduler.cli.output import print_table, put, show_facts
    from tilewright.scheduler.dispatch.explaining import (
        KERNEL_COLUMNS,
        ROW_COLUMNS,
        facts,
        kernel_rows,
        size_rows,
    )

    show_facts(facts(table))
    put("")
    print_table(KERNEL_COLUMNS, kernel_rows(table))
    put("")
    print_table(ROW_COLUMNS, size_rows(table))
