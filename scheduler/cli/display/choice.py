"""Choose the display of a tuning run: a live table on a terminal, lines, a notebook, or JSON.

:func:`display` returns a :class:`Display`, which is told each event of the run. Each display has a
module of its own. All but JSON take their words from a
:class:`~scheduler.cli.display.course.Course`.
"""

from __future__ import annotations

from typing import Protocol, Self

from tilewright.scheduler.cli.display.course import Course, WorkloadCourse
from tilewright.scheduler.cli.display.json_lines import JsonLines
from tilewright.scheduler.cli.display.live_table import LiveTable, Status
from tilewright.scheduler.cli.display.notebook import NotebookDisplay, is_notebook
from tilewright.scheduler.cli.display.plain_lines import PlainLines
from tilewright.scheduler.cli.display.suite_course import SuiteCourse
from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.output import can_redraw
from tilewright.scheduler.tuning.events import Event, Started


class Display(Protocol):
    """Watches a tuning run. The run enters it at its begin and leaves it at its end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def tell(self, event: Event) -> None:
        """Show an event of the run; the first is its start."""
        ...


def display(
    format: Format,
    quiet: bool = False,
    verbose: bool = False,
    name: str = "",
    status: Status = lambda: None,
) -> Display:
    """Choose the display that fits standard output: a terminal, a file or a pipe.

    ``quiet`` prints the result only, ``verbose`` also a line for each trial. Runs for several
    targets have no table; each line then begins with ``name``, the target. ``status`` returns what
    the workers of a cluster do, if there is one.
    """
    if format is Format.JSON:
        return JsonLines()

    def course(started: Started) -> Course:
        return course_of(started, verbose)

    if can_redraw() and not (quiet or verbose or name):
        return LiveTable(course, status)
    return PlainLines(course, quiet, name)


def display_in_python() -> Display:
    """Choose the display of a run that a Python program starts: one output in a notebook, and the
    display of the command line elsewhere."""
    if is_notebook():
        return NotebookDisplay(course_of)
    return LiveTable(course_of) if can_redraw() else PlainLines(course_of)


def course_of(started: Started, verbose: bool = False) -> Course:
    """Return the course of a run that starts, of a suite or of one workload."""
    return (SuiteCourse if started.title else WorkloadCourse)(started, verbose)
