"""A table on a terminal that is redrawn while candidates are built and run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Generic, Self, TypeVar

from rich.console import RenderableType
from rich.live import Live
from rich.table import Table

from tilewright.scheduler.cli.display.progress import Status, remaining
from tilewright.scheduler.cli.display.workers import workers_table
from tilewright.scheduler.cli.output import clock, console
from tilewright.scheduler.suites.progress import SuiteProgress
from tilewright.scheduler.tuning.progress import Progress

PER_SECOND = 2  # drawing takes time from the kernels that are being timed

Told = TypeVar("Told", Progress, SuiteProgress)


class Redrawn(ABC, Generic[Told]):
    """The state of a run, drawn again by a thread of its own, so that its clock never stops;
    ``status`` says what the workers of its cluster do, if it has one."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._progress: Told | None = None
        self._begun = self._told = time.monotonic()

    def __enter__(self) -> Self:
        self._live = Live(
            console=console(), get_renderable=self._drawn, refresh_per_second=PER_SECOND
        )
        self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def progress(self, progress: Told) -> None:
        """Show where the run stands when it is drawn next."""
        self._told = time.monotonic() - progress.elapsed
        self._progress = progress

    def _last(self) -> None:
        """Draw where the run stood last, before its result takes the place."""
        self._live.refresh()

    @abstractmethod
    def _drawn(self) -> RenderableType:
        """The state as it is now."""

    def _workers(self) -> list[Table]:
        """A table of the cluster's workers, or nothing on this machine."""
        status = self._status()
        return [] if status is None else [workers_table(status.workers)]

    def _passed(self) -> str:
        """The time since the run began, and what is known to be left of it."""
        passed = clock(time.monotonic() - self._begun)
        if self._progress is None:
            return passed
        return f"{passed}, {remaining(self._progress, time.monotonic() - self._told)}"
