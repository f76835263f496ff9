"""Lines for a file or a pipe: the start, each gain, a sign of life, the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tilewright.scheduler.cli.display.course import Course
from tilewright.scheduler.cli.display.lines import Lines
from tilewright.scheduler.cli.output import show
from tilewright.scheduler.tuning.yardstick import Yardstick


class PlainLines:
    """Few lines: none is rewritten. A thread says where the run stands when all was silent.

    If ``quiet`` the result is printed only. Each line bears ``name``, if that is given.
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

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
        """Say what the run is compared with, as far as there is something."""
        self._lines.say(self._course.comparison(yardsticks))

    def progress(self, progress: Any) -> None:
        """Say what has happened, if it is worth a line."""
        self._lines.say(self._course.news(progress))

    def result(self, result: Any) -> None:
        """Say what was found."""
        self._lines.end()
        for made in self._course.outcome(result):
            show(made)
