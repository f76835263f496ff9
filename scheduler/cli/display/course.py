"""The course of a tuning run in words: its start, each gain, its final comparison, its outcome.

A course prints nothing. Displays ask it for a line when something happened, and for its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from tilewright.scheduler.cli.display.leaders import leaders_table
from tilewright.scheduler.cli.display.progress import (
    attempt_of,
    failures_of,
    figures,
    outcome,
    phase_of,
    standing,
    trials_of,
)
from tilewright.scheduler.cli.output import facts, percent, seconds
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.events import Progress, Started, TuningResult
from tilewright.spaces.workloads.spelling import short_text

LEAST_GAIN = 1.01  # times as fast as what was last said; smaller gains wait for the next line


class Course(Protocol):
    """The questions that displays ask of the course of a run, of a workload or of a suite."""

    @property
    def latest(self) -> Progress | None:
        """The progress that the run told last."""
        ...

    def beginning(self) -> str:
        """Return the line that a run begins with."""
        ...

    def comparison(self, baselines: Sequence[Baseline]) -> str:
        """Return a line on what the run is compared with; empty if that is nothing."""
        ...

    def news(self, progress: Progress) -> str:
        """Return a line on what has happened; empty if that is not worth one."""
        ...

    def standing(self) -> str:
        """Return one line: where the run stands now."""
        ...

    def state(self, passed: str) -> list[RenderableType]:
        """Return the state of the run after the time ``passed``, as tables."""
        ...

    def outcome(self, result: TuningResult) -> list[RenderableType]:
        """Return the outcome as tables; none if no kernel was right."""
        ...


class WorkloadCourse:
    """The course of the run of one workload. If ``verbose``, every trial is news."""

    def __init__(self, started: Started, verbose: bool = False) -> None:
        self.latest: Progress | None = None
        workload = started.members[0].workload
        self._title = f"{short_text(workload)} on {started.target.summary}"
        self._session, self._verbose = started.session, verbose
        self._baseline = Baseline(workload)
        self._begun = not started.compares
        self._said: float | None = None  # the latency of the best that was last said

    def beginning(self) -> str:
        """See :class:`Course`."""
        return beginning(self._title, self._session)

    def comparison(self, baselines: Sequence[Baseline]) -> str:
        """See :class:`Course`."""
        [baseline] = baselines
        self._baseline, self._begun = baseline, True
        words = []
        if baseline.peak_gflops is not None:
            words.append(f"peak of this machine: {baseline.peak_gflops:.1f} GFLOP/s")
        if baseline.numpy_seconds is not None:
            words.append(f"NumPy's product, timed once: {seconds(baseline.numpy_seconds)}")
        return "; ".join(words)

    def news(self, progress: Progress) -> str:
        """Return a gain, the start of the comparison, what is known from earlier runs."""
        begins = self.latest is None or progress.phase != self.latest.phase
        self.latest = progress
        if begins and progress.phase == "final":
            return phase_of(progress)
        if begins and progress.resumed:
            return f"known from earlier runs: {progress.resumed} schedules"
        if self._verbose and progress.latest is not None:
            return attempt_of(progress)
        if self._gains(progress):
            which = f"trial {progress.trials}" if progress.trials else "best of earlier runs"
            return f"{which}: {self._best(progress)}"
        return ""

    def standing(self) -> str:
        """See :class:`Course`."""
        where = standing(self.latest, self._begun)
        return where if self.latest is None else f"{where}; best: {self._best(self.latest)}"

    def state(self, passed: str) -> list[RenderableType]:
        """See :class:`Course`."""
        progress = self.latest
        rows = [("phase", phase_of(progress, self._begun))]
        if progress is not None:
            rows += [
                ("trials", trials_of(progress)),
                ("failures", failures_of(progress)),
                *figures(self._baseline, progress.best.score if progress.best else None),
            ]
        return [facts([*rows, ("time", passed)])]

    def outcome(self, result: TuningResult) -> list[RenderableType]:
        """See :class:`Course`."""
        found = outcome(result, self._baseline, self._session)
        if not found:
            return []
        return [facts(found), Text(), leaders_table(result.leaders)]

    def _gains(self, progress: Progress) -> bool:
        if progress.best is None or progress.best.score is None or progress.phase == "final":
            return False
        return self._said is None or self._said > LEAST_GAIN * progress.best.score

    def _best(self, progress: Progress) -> str:
        score = progress.best.score if progress.best else None
        if score is None:
            return "no right kernel yet"
        self._said = score
        words = [seconds(score), self._baseline.rate(score)]
        if (share := self._baseline.of_peak(score)) is not None:
            words.append(f"{percent(share)} of peak")
        return ", ".join(words)


def beginning(title: str, session: str) -> str:
    """Return the line that a run with this title begins with."""
    return f"tuning {title}" + (f"; session {session}" if session else "")
