"""Lines on a terminal that stay, and below them a table that is redrawn until the run ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from tilewright.scheduler.cli.display.course import Course
from tilewright.scheduler.cli.display.progress import remaining
from tilewright.scheduler.cli.display.workers import workers_table
from tilewright.scheduler.cli.output import clock, console
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.tuning.events import Compared, Event, Progress, Started

if TYPE_CHECKING:
    from tilewright.measure.cluster.status import DriverStatus

Status = Callable[[], "DriverStatus | None"]
PER_SECOND = 2  # drawing takes time from the kernels that are being timed


class LiveTable:
    """Prints the course of a run as lines and draws its state in a table below them.

    A thread redraws the table, so that its clock never stops. ``status`` returns what the workers
    of a cluster do, if there is one; the table shows that, too. ``course_of`` makes the course of a
    run that starts.
    """

    def __init__(
        self, course_of: Callable[[Started], Course], status: Status = lambda: None
    ) -> None:
        self._course_of, self._status = course_of, status
        self._outcome: list[RenderableType] = []
        self._begun = self._told = time.monotonic()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, event: Event) -> None:
        """Print what has happened, if it is worth a line; in the end, the outcome replaces the
        table. The table shows the rest when it is redrawn."""
        if isinstance(event, Started):
            self._begin(event)
        elif isinstance(event, Compared):
            self._say(self._course.comparison(event.baselines))
        elif isinstance(event, Progress):
            self._told = time.monotonic() - event.elapsed
            self._say(self._course.news(event))
        else:
            if self._live is not None:
                self._live.refresh()  # the last state is drawn once
            self._outcome = self._course.outcome(event)

    def _begin(self, started: Started) -> None:
        self._course = self._course_of(started)
        self._live = Live(
            console=console(), get_renderable=self._drawn, refresh_per_second=PER_SECOND
        )
        self._live.start(refresh=True)
        self._say(self._course.beginning())

    def _say(self, text: str) -> None:
        """Print a line that stays above the table."""
        if text and self._live is not None:
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
