"""Lines for a file or a pipe: the start, each gain, a sign of life, the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tilewright.scheduler.cli.display.course import Course
from tilewright.scheduler.cli.display.lines import Lines
from tilewright.scheduler.cli.output import show
from tilewright.scheduler.tuning.baseline import Baseline


class PlainLines:
    """Prints few lines, and rewrites none. A thread prints where the run stands after each silence.

    If ``quiet``, only the result is printed. Each line begins with ``name``, if there is one.
    """

    def __init__(self, course: Course, quiet: bool = False, name: str = "") -> None:
        self._course = course
        self._lines = Lines(course.standing, quiet, name)

    def __enter__(self) -> Self:
        self._lines.begin()
        self._lines.say(self._course.beginning())
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.end()

    def compare_with(self, baselines: Sequence[Baseline]) -> None:
        """Print what the run is compared with, if there is something."""
        self._lines.say(self._course.comparison(baselines))

    def progress(self, progress: Any) -> None:
        """Print what has happened, if it is worth a line."""
        self._lines.say(self._course.news(progress))

    def result(self, result: Any) -> None:
        """Print the outcome."""
        self._lines.end()
        for made in self._course.outcome(result):
            show(made)
