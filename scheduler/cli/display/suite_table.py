"""A table of a suite's workloads on a terminal, that goes on while candidates are built and run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from tilewright.scheduler.cli.display.progress import Status, failures_of, phase_of, trials_of
from tilewright.scheduler.cli.display.redrawn import Redrawn
from tilewright.scheduler.cli.display.suite_progress import (
    objective_of,
    outcome,
    tasks_table,
    title_of,
)
from tilewright.scheduler.cli.output import facts
from tilewright.scheduler.suites.progress import SuiteProgress, SuiteResult
from tilewright.scheduler.suites.suite import Suite
from tilewright.scheduler.tuning.yardstick import Yardstick
from tilewright.spaces.target import Target


class SuiteTable(Redrawn[SuiteProgress]):
    """The state of the run of a suite."""

    def __init__(self, suite: Suite, target: Target, session: str, status: Status) -> None:
        super().__init__(status)
        self._title, self._session = title_of(suite, target), session
        self._result: SuiteResult | None = None

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
        """The table shows it."""

    def result(self, result: SuiteResult) -> None:
        """Show what was found, in the place of where the run stands."""
        self._last()
        self._result = result

    def _drawn(self) -> Group:
        if self._result is not None:
            return outcome(self._result, self._session)
        progress = self._progress
        rows = [("tuning", self._title), ("phase", phase_of(progress))]
        if progress is None:
            return Group(facts([*rows, ("time", self._passed())]), *self._workers())
        rows += [
            ("trials", trials_of(progress)),
            ("failures", failures_of(progress)),
            ("objective", objective_of(progress)),
            ("time", self._passed()),
        ]
        return Group(tasks_table(progress), facts(rows), *self._workers())
