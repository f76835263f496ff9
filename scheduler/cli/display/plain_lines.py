"""Lines for a file or a pipe: the start, each gain, a sign of life, the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from tilewright.scheduler.cli.display.course import Course
from tilewright.scheduler.cli.display.lines import Lines
from tilewright.scheduler.cli.output import show
from tilewright.scheduler.tuning.events import Compared, Event, Progress, Started


class PlainLines:
    """Prints few lines, and rewrites none. A thread prints where the run stands after each silence.

    If ``quiet``, only the result is printed. Each line begins with ``name``, if there is one.
    ``course_of`` makes the course of a run that starts.
    """

    def __init__(
        self, course_of: Callable[[Started], Course], quiet: bool = False, name: str = ""
    ) -> None:
        self._course_of = course_of
        self._lines = Lines(lambda: self._course.standing(), quiet, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.end()

    def tell(self, event: Event) -> None:
        """Print what has happened, if it is worth a line; in the end, the outcome."""
        if isinstance(event, Started):
            self._course = self._course_of(event)
            self._lines.begin()
            self._lines.say(self._course.beginning())
        elif isinstance(event, Compared):
            self._lines.say(self._course.comparison(event.baselines))
        elif isinstance(event, Progress):
            self._lines.say(self._course.news(event))
        else:
            self._lines.end()
            for made in self._course.outcome(event):
                show(made)
