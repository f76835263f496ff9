"""Lines on a terminal that stay, and below them a table that is redrawn until the run ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from tilewright.scheduler.cli.display.course import Course
from tilewright.scheduler.cli.display.progress import remaining
from tilewright.scheduler.cli.display.workers import workers_table
from tilewright.scheduler.cli.output import clock, console
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.tuning.baseline import Baseline

if TYPE_CHECKING:
    from tilewright.measure.cluster.status import DriverStatus

Status = Callable[[], "DriverStatus | None"]
PER_SECOND = 2  # drawing takes time from the kernels that are being timed


class LiveTable:
    """Prints the course of a run as lines and draws its state in a table below them.

    A thread redraws the table, so that its clock never stops. ``status`` returns what the workers
    of a cluster do, if there is one; the table shows that, too.
    """

    def __init__(self, course: Course, status: Status = lambda: None) -> None:
        self._course, self._status = course, status
        self._outcome: list[RenderableType] = []
        self._begun = self._told = time.monotonic()

    def __enter__(self) -> Self:
        self._live = Live(
            console=console(), get_renderable=self._drawn, refresh_per_second=PER_SECOND
        )
        self._live.start(refresh=True)
        self._say(self._course.beginning())
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def compare_with(self, baselines: Sequence[Baseline]) -> None:
        """Print what the run is compared with, if there is something."""
        self._say(self._course.comparison(baselines))

    def progress(self, progress: Any) -> None:
        """Print what has happened, if it is worth a line. The table shows the rest when it is
        redrawn."""
        self._told = time.monotonic() - progress.elapsed
        self._say(self._course.news(progress))

    def result(self, result: Any) -> None:
        """Replace the table by the outcome."""
        self._live.refresh()  # the last state is drawn once
        self._outcome = self._course.outcome(result)

    def _say(self, text: str) -> None:
        """Print a line that stays above the table."""
        if text:
            passed = clock(time.monotonic() - self._begun)
            self._live.console.print(Text(f"{passed}  {plain(text)}"))

    def _drawn(self) -> Group:
        if self._outcome:
            return Group(*self._outcome)
        status = self._status()
        workers = [] if status is None else [workers_table(status.workers)]
        return Group(*self._course.state(self._passed()), *workers)

    def _passed(self) -> str:
        """Return the time since the run began, and what is known to be left of it."""
        passed = clock(time.monotonic() - self._begun)
        if (latest := self._course.latest) is None:
            return passed
        return f"{passed}, {remaining(latest, time.monotonic() - self._told)}"
