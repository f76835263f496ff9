"""A table of a suite's workloads on a terminal, that goes on while candidates are built and run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from rich.console import Group
from rich.live import Live

from scheduler.cli.live_table import REDRAWN_PER_SECOND
from scheduler.cli.output import clock, console, facts
from scheduler.cli.progress import failures_of, phase_of, remaining, trials_of
from scheduler.cli.suite_display import objective_of, outcome, tasks_table, title_of
from scheduler.suite import Suite
from scheduler.suite_progress import SuiteProgress, SuiteResult
from scheduler.yardstick import Yardstick
from spaces.target import Target


class SuiteTable:
    """The state of a run, drawn again by a thread of its own, so that its clock never stops."""

    def __init__(self, suite: Suite, target: Target, session: str) -> None:
        self._title, self._session = title_of(suite, target), session
        self._progress: SuiteProgress | None = None
        self._result: SuiteResult | None = None
        self._begun = self._told = time.monotonic()
        self._live = Live(
            console=console(),
            get_renderable=self._drawn,
            refresh_per_second=REDRAWN_PER_SECOND,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
        """The table shows it."""

    def progress(self, progress: SuiteProgress) -> None:
        """Show where the run stands when the table is drawn next."""
        self._told = time.monotonic() - progress.elapsed
        self._progress = progress

    def result(self, result: SuiteResult) -> None:
        """Show what was found, in the place of where the run stands."""
        self._result = result

    def _drawn(self) -> Group:
        if self._result is not None:
            return outcome(self._result, self._session)
        progress = self._progress
        passed = clock(time.monotonic() - self._begun)
        rows = [("tuning", self._title), ("phase", phase_of(progress))]
        if progress is None:
            return Group(facts([*rows, ("time", passed)]))
        left = remaining(progress, time.monotonic() - self._told)
        rows += [
            ("trials", trials_of(progress)),
            ("failures", failures_of(progress)),
            ("objective", objective_of(progress)),
            ("time", f"{passed}, {left}"),
        ]
        return Group(tasks_table(progress), facts(rows))
