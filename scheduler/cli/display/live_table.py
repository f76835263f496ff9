"""A table on a terminal that goes on while candidates are built and run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table

from tilewright.scheduler.cli.display.progress import (
    Status,
    failures_of,
    figures,
    outcome,
    phase_of,
    trials_of,
)
from tilewright.scheduler.cli.display.redrawn import Redrawn
from tilewright.scheduler.cli.output import facts
from tilewright.scheduler.tuning.progress import Progress, TuningResult
from tilewright.scheduler.tuning.yardstick import Yardstick
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


class LiveTable(Redrawn[Progress]):
    """The state of the run of one workload, and of the workers if it has a cluster."""

    def __init__(self, workload: Workload, target: Target, session: str, status: Status) -> None:
        super().__init__(status)
        self._workload, self._target, self._session = workload, target, session
        self._yardstick = Yardstick(workload)
        self._outcome: list[tuple[str, str]] = []

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
        """See :class:`scheduler.cli.display.choice.Display`."""
        [self._yardstick] = yardsticks

    def result(self, result: TuningResult) -> None:
        """Show what was found, in the place of where the run stands."""
        self._last()
        self._outcome = outcome(result, self._yardstick, self._session)

    def _drawn(self) -> Table | Group:
        if self._outcome:
            return facts(self._outcome)
        return Group(self._table(), *self._workers())

    def _table(self) -> Table:
        progress = self._progress
        rows = [("tuning", f"{self._workload} on {self._target.summary}")]
        if progress is None:
            return facts([*rows, ("phase", phase_of(None)), ("time", self._passed())])
        return facts(
            [
                *rows,
                ("phase", phase_of(progress)),
                ("trials", trials_of(progress)),
                ("failures", failures_of(progress)),
                *figures(self._yardstick, progress.best.score if progress.best else None),
                ("time", self._passed()),
            ]
        )
