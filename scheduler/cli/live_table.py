"""A table on a terminal that goes on while candidates are built and run."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.table import Table

from scheduler.cli.output import clock, console, facts
from scheduler.cli.progress import (
    Status,
    failures_of,
    figures,
    outcome,
    phase_of,
    remaining,
    trials_of,
)
from scheduler.cli.status import workers_table
from scheduler.progress import Progress, TuningResult
from scheduler.yardstick import Yardstick
from spaces.target import Target
from spaces.workload import Workload

REDRAWN_PER_SECOND = 2  # drawing takes time from the kernels that are being timed


class LiveTable:
    """The state of a run, drawn again by a thread of its own, so that its clock never stops."""

    def __init__(self, workload: Workload, target: Target, session: str, status: Status) -> None:
        self._workload, self._target, self._session = workload, target, session
        self._status = status
        self._yardstick = Yardstick(workload)
        self._progress: Progress | None = None
        self._outcome: list[tuple[str, str]] = []
        self._begun = self._told = time.monotonic()
        self._live = Live(
            console=console(),
            get_renderable=self._shown,
            refresh_per_second=REDRAWN_PER_SECOND,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def compare_with(self, yardstick: Yardstick) -> None:
        """See :class:`scheduler.cli.progress.Display`."""
        self._yardstick = yardstick

    def progress(self, progress: Progress) -> None:
        """Show where the run stands when the table is drawn next."""
        self._told = time.monotonic() - progress.elapsed
        self._progress = progress

    def result(self, result: TuningResult) -> None:
        """Show what was found, in the place of where the run stands."""
        self._outcome = outcome(result, self._yardstick, self._session)

    def _shown(self) -> Table | Group:
        status = None if self._outcome else self._status()
        if status is None:
            return self._table()
        return Group(self._table(), workers_table(status.workers))

    def _table(self) -> Table:
        if self._outcome:
            return facts(self._outcome)
        progress = self._progress
        passed = clock(time.monotonic() - self._begun)
        rows = [("tuning", f"{self._workload} on {self._target.summary}")]
        if progress is None:
            return facts([*rows, ("phase", phase_of(None)), ("time", passed)])
        left = remaining(progress, time.monotonic() - self._told)
        return facts(
            [
                *rows,
                ("phase", phase_of(progress)),
                ("trials", trials_of(progress)),
                ("failures", failures_of(progress)),
                *figures(self._yardstick, progress.best.score if progress.best else None),
                ("time", f"{passed}, {left}"),
            ]
        )
