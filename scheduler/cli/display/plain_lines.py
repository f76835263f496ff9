"""Lines for a file or a pipe: the start, each gain, a sign of life, the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from tilewright.scheduler.cli.display.lines import Lines
from tilewright.scheduler.cli.display.progress import attempt_of, outcome, phase_of, standing
from tilewright.scheduler.cli.output import percent, seconds, show_facts
from tilewright.scheduler.tuning.progress import Progress, TuningResult
from tilewright.scheduler.tuning.yardstick import Yardstick
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

LEAST_GAIN = 1.01  # times as fast as what was last shown; smaller gains wait for the next line


class PlainLines:
    """Few lines: none is rewritten. A thread says where the run stands when all was silent."""

    def __init__(
        self,
        workload: Workload,
        target: Target,
        session: str,
        quiet: bool = False,
        verbose: bool = False,
        name: str = "",
    ) -> None:
        self._workload, self._target, self._session = workload, target, session
        self._verbose = verbose
        self._yardstick = Yardstick(workload)
        self._progress: Progress | None = None
        self._shown: float | None = None
        self._phase = ""
        self._lines = Lines(self._where, quiet, name)

    def __enter__(self) -> Self:
        self._lines.begin()
        about = f"{self._workload} on {self._target.summary}"
        self._lines.say(f"tuning {about}; session {self._session}")
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.end()

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
        """Say what the run is compared with, as far as there is something."""
        [yardstick] = yardsticks
        self._yardstick = yardstick
        words = []
        if yardstick.peak_gflops is not None:
            words.append(f"peak of this machine: {yardstick.peak_gflops:.1f} GFLOP/s")
        if yardstick.numpy_seconds is not None:
            once = seconds(yardstick.numpy_seconds)
            words.append(f"NumPy's product, timed once: {once}")
        if words:
            self._lines.say("; ".join(words))

    def progress(self, progress: Progress) -> None:
        """Say a gain, and that the best are compared; if verbose, every trial."""
        begins = progress.phase != self._phase
        self._progress, self._phase = progress, progress.phase
        if begins and progress.phase == "final":
            self._lines.say(phase_of(progress))
        elif begins and progress.resumed:
            self._lines.say(f"known from earlier runs: {progress.resumed} schedules")
        elif self._verbose and progress.latest is not None:
            self._lines.say(attempt_of(progress))
        elif self._gains(progress):
            which = f"trial {progress.trials}" if progress.trials else "best of earlier runs"
            self._lines.say(f"{which}: {self._best(progress)}")

    def result(self, result: TuningResult) -> None:
        """Say what was found."""
        self._lines.end()
        if result.best is not None:
            show_facts(outcome(result, self._yardstick, self._session))

    def _gains(self, progress: Progress) -> bool:
        if progress.best is None or progress.best.score is None or progress.phase == "final":
            return False
        return self._shown is None or self._shown > LEAST_GAIN * progress.best.score

    def _best(self, progress: Progress) -> str:
        score = progress.best.score if progress.best else None
        if score is None:
            return "no right kernel yet"
        self._shown = score
        words = [seconds(score), self._yardstick.rate(score)]
        if (share := self._yardstick.of_peak(score)) is not None:
            words.append(f"{percent(share)} of peak")
        return ", ".join(words)

    def _where(self) -> str:
        where = standing(self._progress)
        return where if self._progress is None else f"{where}; best: {self._best(self._progress)}"
