"""Tables on standard output, and how quantities are written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler.cli.text import plain

WIDE = 240  # columns where nobody looks: files and pipes get whole lines


def console(stream: TextIO | None = None) -> Console:
    """Standard output as it is now, or another stream."""
    stream = stream or sys.stdout
    return Console(file=stream, width=None if stream.isatty() else WIDE, highlight=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of plain text; a column whose name begins with # holds numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        numeric = column.startswith("#")
        made.add_column(column.lstrip("#"), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and values, one pair a line."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(name, Text(plain(value)))
    return made


def seconds(value: float) -> str:
    """A time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def clock(value: float) -> str:
    """Minutes and seconds."""
    return f"{int(value) // 60}:{int(value) % 60:02d}"


def percent(value: float | None) -> str:
    """A share, or a dash where it is unknown."""
    return "-" if value is None else f"{100 * value:.1f} %"


def times(value: float | None) -> str:
    """A ratio, or a dash where it is unknown."""
    return "-" if value is None else f"{value:.2f} x"
