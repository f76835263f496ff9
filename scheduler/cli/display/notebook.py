"""One output of a notebook's cell that is replaced while a run goes on."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Self

from rich.console import Console, RenderableType

from tilewright.scheduler.cli.display.course import Course
from tilewright.scheduler.cli.display.progress import remaining
from tilewright.scheduler.cli.output import clock
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.tuning.events import Compared, Event, Progress, Started

SECONDS = 0.5  # between two updates; each is a message to the browser
WIDTH = 100  # characters of a line


def is_notebook() -> bool:
    """Return True if this runs in a notebook's kernel. IPython is asked only if somebody has
    imported it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


class NotebookDisplay:
    """Shows the course of a run, and its state below, in one output that is updated."""

    def __init__(self, course_of: Callable[[Started], Course]) -> None:
        self._course_of = course_of
        self._lines: list[str] = []
        self._begun, self._shown_at = time.monotonic(), 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is left to do: the output stays as it is."""

    def tell(self, event: Event) -> None:
        """Show what has happened, and where the run stands; in the end, the outcome."""
        if isinstance(event, Started):
            self._begin(event)
        elif isinstance(event, Compared):
            self._note(self._course.comparison(event.baselines))
        elif isinstance(event, Progress):
            self._note(self._course.news(event))
            if time.monotonic() - self._shown_at >= SECONDS:
                passed = f"{clock(event.elapsed)}, {remaining(event, event.elapsed)}"
                self._show(self._course.state(passed))
        else:
            self._show(self._course.outcome(event))

    def _begin(self, started: Started) -> None:
        self._course = self._course_of(started)
        self._note(self._course.beginning())
        made = _Preformatted(self._text(self._course.state(clock(0.0))))
        self._handle = sys.modules["IPython"].display.display(made, display_id=True)

    def _note(self, text: str) -> None:
        if text:
            self._lines.append(f"{clock(time.monotonic() - self._begun)}  {plain(text)}")

    def _show(self, tables: Sequence[RenderableType]) -> None:
        self._shown_at = time.monotonic()
        self._handle.update(_Preformatted(self._text(tables)))

    def _text(self, tables: Sequence[RenderableType]) -> str:
        written = io.StringIO()
        settings: dict[str, Any] = {"force_terminal": False, "force_jupyter": False}
        printer = Console(file=written, width=WIDTH, highlight=False, **settings)
        for made in (*self._lines, *tables):
            printer.print(made, markup=False)
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


class _Preformatted:
    """Text that a notebook shows in a fixed pitch."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"
