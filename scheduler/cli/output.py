"""Tables on standard output, and how quantities are written."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Literal, TextIO

from tilewright.scheduler.cli.table_width import fit_columns, has_mark, name_of
from tilewright.scheduler.cli.text import plain

if TYPE_CHECKING:  # rich takes a tenth of a second to load, which lines need not
    from rich.console import Console, RenderableType
    from rich.table import Table

    from tilewright.measure.estimates import Estimate

WIDE = 1 << 17  # columns where nobody looks: files and pipes get whole lines
DUMB = ("dumb", "unknown")  # terminals that only print, such as those within editors
LONG = 200  # rows of a table; rich takes a millisecond for each


_printing = threading.Lock()


def put(text: str) -> None:
    """Print ``text`` and the end of a line in one piece, whoever else prints."""
    with _printing:
        print(text, flush=True)


def show(made: RenderableType, stream: TextIO | None = None) -> None:
    """Print a table in one piece, whoever else prints; no blanks end its lines where nobody looks.

    It goes to standard output as it is now, or to another stream.
    """
    printer = console(stream)
    with _printing:
        if printer.is_terminal:
            printer.print(made)
            return
        with printer.capture() as written:
            printer.print(made)
        lines = written.get().splitlines()
        print("\n".join(line.rstrip() for line in lines), file=printer.file, flush=True)


def can_redraw() -> bool:
    """Return True if standard output is a terminal whose printed lines can be overwritten."""
    return sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in DUMB


def console(stream: TextIO | None = None) -> Console:
    """Standard output as it is now, or another stream; no colours where nobody looks."""
    from rich.console import Console

    stream = stream or sys.stdout
    seen = stream.isatty()  # whatever FORCE_COLOR says
    width = None if seen else WIDE
    return Console(
        file=stream, width=width, force_terminal=seen, force_jupyter=False, highlight=False
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of plain text; marks of columns are those of ``scheduler.cli.table_width``."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if has_mark(column, "#") else "left"
        made.add_column(name_of(column), justify=side, overflow="fold")
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a :func:`table`; as aligned lines where it is long, or where nobody looks. One with
    columns that may be cut fits a terminal's width."""
    if sys.stdout.isatty() and any(has_mark(column, "~") for column in columns):
        cells = [[plain(cell) for cell in row] for row in rows]
        print("\n".join(aligned(*fit_columns(columns, cells, console().width))))
    elif sys.stdout.isatty() and len(rows) < LONG:
        console().print(table(columns, rows))
    else:
        print("\n".join(aligned(columns, rows)))


def aligned(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return the lines of plain text with each column as wide as it needs; see :func:`table`."""
    names = [name_of(column) for column in columns]
    lines = [names, *([plain(cell) for cell in row] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides = [">" if has_mark(column, "#") else "<" for column in columns]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return (form.format(*line).rstrip() for line in lines)


def show_facts(pairs: Sequence[tuple[str, str]], stream: TextIO | None = None) -> None:
    """Print :func:`facts`; as aligned lines where nobody looks, which need no rich."""
    stream = stream or sys.stdout
    if stream.isatty():
        show(facts(pairs), stream)
        return
    width = max((len(name) for name, _ in pairs), default=0)
    lines = (f"{name:{width}}  {plain(value)}".rstrip() for name, value in pairs)
    with _printing:
        print("\n".join(lines), file=stream, flush=True)


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and values, one pair a line."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(name, Text(plain(value)))
    return made


def seconds(value: float) -> str:
    """Return a time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def estimated(estimate: Estimate, write: Callable[[float], str]) -> str:
    """Return an estimate and its interval, by a function that writes numbers."""
    low, high = map(write, estimate.ends)
    return f"{write(estimate.value)} ({low} to {high})"


def clock(value: float) -> str:
    """Minutes and seconds, or a dash where there is no end of them."""
    return f"{int(value) // 60}:{int(value) % 60:02d}" if isfinite(value) else "-"


def moment(value: float) -> str:
    """Date and time here of a Unix time, or a dash where there was none."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    except (OverflowError, ValueError, OSError):
        return "-"


def percent(value: float | None) -> str:
    """Return a share, or a dash where it is unknown."""
    return "-" if value is None else f"{100 * value:.1f} %"


def times(value: float | None) -> str:
    """Return a ratio, or a dash where it is unknown."""
    return "-" if value is None else f"{value:.2f} x"
