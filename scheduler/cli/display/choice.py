"""Choose the display of a tuning run: a live table on a terminal, lines, or JSON.

:func:`display` returns a :class:`Display`, whose methods are called at each step of the run. Each
display has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from tilewright.scheduler.cli.display.json_lines import JsonLines
from tilewright.scheduler.cli.display.live_table import LiveTable
from tilewright.scheduler.cli.display.plain_lines import PlainLines
from tilewright.scheduler.cli.display.progress import Status
from tilewright.scheduler.cli.display.suite_json import SuiteJson
from tilewright.scheduler.cli.display.suite_lines import SuiteLines
from tilewright.scheduler.cli.display.suite_table import SuiteTable
from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.output import can_redraw
from tilewright.scheduler.suites.suite import Suite
from tilewright.scheduler.tuning.yardstick import Yardstick
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


class Display(Protocol):
    """Somebody who watches a tuning run. Entered when it begins, left when it ends."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
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
    """The display for standard output as it is: a terminal, a file or a pipe. Those of a suite have
    a table of its workloads.

    ``quiet`` shows the result only, ``verbose`` a line for each trial. ``name`` stands in each line
    where several targets are tuned for at once; there is no table for them. ``status`` says what
    the workers of a cluster do, if there is one.
    """
    as_json, as_table, as_lines = _OF_SUITE if isinstance(what, Suite) else _OF_WORKLOAD
    if format is Format.JSON:
        return as_json(what, target, session)
    if can_redraw() and not (quiet or verbose or name):
        return as_table(what, target, session, status)
    return as_lines(what, target, session, quiet, verbose, name)


_Kinds = tuple[Callable[..., Display], Callable[..., Display], Callable[..., Display]]
_OF_WORKLOAD: _Kinds = (JsonLines, LiveTable, PlainLines)
_OF_SUITE: _Kinds = (SuiteJson, SuiteTable, SuiteLines)
