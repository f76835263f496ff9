"""Choose the display of a tuning run: a live table on a terminal, lines, a notebook, or JSON.

:func:`display` returns a :class:`Display`, whose methods are called at each step of the run. Each
display has a module of its own. All but JSON take their words from a
:class:`~scheduler.cli.display.course.Course`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from tilewright.scheduler.cli.display.course import Course, WorkloadCourse
from tilewright.scheduler.cli.display.json_lines import JsonLines
from tilewright.scheduler.cli.display.live_table import LiveTable, Status
from tilewright.scheduler.cli.display.notebook import NotebookDisplay, is_notebook
from tilewright.scheduler.cli.display.plain_lines import PlainLines
from tilewright.scheduler.cli.display.suite_course import SuiteCourse
from tilewright.scheduler.cli.display.suite_json import SuiteJson
from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.output import can_redraw
from tilewright.scheduler.suites.suite import Suite
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


class Display(Protocol):
    """Watches a tuning run. The run enters it at its begin and leaves it at its end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def compare_with(self, baselines: Sequence[Baseline]) -> None:
        """Tell what each workload is compared with, as soon as that is measured."""
        ...

    def progress(self, progress: Any) -> None:
        """Tell where the run stands: a ``Progress``, or a ``SuiteProgress`` of a suite."""
        ...

    def result(self, result: Any) -> None:
        """Tell what was found: a ``TuningResult``, or a ``SuiteResult`` of a suite."""
        ...


def display(
    what: Workload | Suite,
    target: Target,
    session: str,
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
        if isinstance(what, Suite):
            return SuiteJson(what, target, session)
        return JsonLines(what, target, session)
    course = _course(what, target, session, verbose)
    if can_redraw() and not (quiet or verbose or name):
        return LiveTable(course, status)
    return PlainLines(course, quiet, name)


def display_in_python(what: Workload | Suite, target: Target) -> Display:
    """Choose the display of a run that a Python program starts: one output in a notebook, and the
    display of the command line elsewhere."""
    course = _course(what, target)
    if isinstance(what, Workload):
        course.comparison([Baseline(what)])  # no peak is measured for it
    if is_notebook():
        return NotebookDisplay(course)
    return LiveTable(course) if can_redraw() else PlainLines(course)


def _course(
    what: Workload | Suite, target: Target, session: str = "", verbose: bool = False
) -> Course:
    if isinstance(what, Suite):
        return SuiteCourse(what, target, session, verbose)
    return WorkloadCourse(what, target, session, verbose)
