"""The course of the tuning of a suite in words, see ``scheduler.cli.display.course``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from tilewright.scheduler.cli.display.course import LEAST_GAIN, beginning
from tilewright.scheduler.cli.display.progress import (
    attempt_of,
    failures_of,
    phase_of,
    standing,
    trials_of,
)
from tilewright.scheduler.cli.display.suite_progress import (
    objective_of,
    outcome,
    tasks_table,
    title_of,
)
from tilewright.scheduler.cli.output import facts, seconds
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.sections import values_of
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.events import Progress, Started, TuningResult


class SuiteCourse:
    """The course of the run of a suite. If ``verbose``, every trial is news."""

    def __init__(self, started: Started, verbose: bool = False) -> None:
        self.latest: Progress | None = None
        self._title, self._session = title_of(started), started.session
        self._members, self._verbose = started.members, verbose
        self._begun = not started.compares
        self._said: float | None = None  # the value of the objective that was last said

    def beginning(self) -> str:
        """See :class:`scheduler.cli.display.course.Course`."""
        return beginning(self._title, self._session)

    def comparison(self, baselines: Sequence[Baseline]) -> str:
        """Return NumPy's weighted sum, if all of it is known."""
        self._begun = True
        theirs = [baseline.numpy_seconds for baseline in baselines]
        found = values_of(Objective.LATENCY, self._members, theirs, theirs)
        sums = [f"{name} {seconds(v)}".strip() for name, v in found.items() if v is not None]
        return f"NumPy's products: weighted sum {', '.join(sums)}" if sums else ""

    def news(self, progress: Progress) -> str:
        """Return a gain of the objective, and the start of the comparison."""
        begins = self.latest is None or progress.phase != self.latest.phase
        self.latest = progress
        if begins and progress.phase == "final":
            return phase_of(progress)
        if self._verbose and progress.latest is not None:
            return attempt_of(progress, f"{progress.tasks[progress.place].member.label}: ")
        if self._gains(progress):
            self._said = progress.value
            return f"trial {progress.trials}: {objective_of(progress)}"
        return ""

    def standing(self) -> str:
        """See :class:`scheduler.cli.display.course.Course`."""
        where = standing(self.latest, self._begun)
        return where if self.latest is None else f"{where}; {objective_of(self.latest)}"

    def state(self, passed: str) -> list[RenderableType]:
        """See :class:`scheduler.cli.display.course.Course`."""
        progress = self.latest
        rows = [("phase", phase_of(progress, self._begun))]
        if progress is None:
            return [facts([*rows, ("time", passed)])]
        rows += [
            ("trials", trials_of(progress)),
            ("failures", failures_of(progress)),
            ("objective", objective_of(progress)),
            ("time", passed),
        ]
        return [tasks_table(progress), facts(rows)]

    def outcome(self, result: TuningResult) -> list[RenderableType]:
        """See :class:`scheduler.cli.display.course.Course`."""
        return outcome(result, self._session)

    def _gains(self, progress: Progress) -> bool:
        value, said = progress.value, self._said
        if value is None or progress.phase == "final":
            return False
        return said is None or max(said / value, value / said) > LEAST_GAIN
