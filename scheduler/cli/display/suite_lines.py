"""Lines about the tuning of a suite, for a file or a pipe: the start, each gain of the objective, a
sign of life, the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from tilewright.scheduler.cli.display.lines import Lines
from tilewright.scheduler.cli.display.plain_lines import LEAST_GAIN
from tilewright.scheduler.cli.display.progress import attempt_of, phase_of, standing
from tilewright.scheduler.cli.display.suite_progress import objective_of, outcome, title_of
from tilewright.scheduler.cli.output import seconds, show
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.progress import SuiteProgress, SuiteResult
from tilewright.scheduler.suites.suite import Suite
from tilewright.scheduler.tuning.yardstick import Yardstick
from tilewright.spaces.target import Target


class SuiteLines:
    """Few lines: none is rewritten. A thread says where the run stands when all was silent."""

    def __init__(
        self,
        suite: Suite,
        target: Target,
        session: str,
        quiet: bool = False,
        verbose: bool = False,
        name: str = "",
    ) -> None:
        self._title, self._session = title_of(suite, target), session
        self._suite, self._verbose = suite, verbose
        self._progress: SuiteProgress | None = None
        self._shown: float | None = None
        self._phase = ""
        self._lines = Lines(self._where, quiet, name)

    def __enter__(self) -> Self:
        self._lines.begin()
        self._lines.say(f"tuning {self._title}; session {self._session}")
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.end()

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
        """Say NumPy's weighted sum, if all of it is known."""
        weights = [member.weight for member in self._suite.members]
        theirs = [yardstick.numpy_seconds for yardstick in yardsticks]
        total = Objective.LATENCY.evaluate(weights, theirs, theirs)
        if total is not None:
            self._lines.say(f"NumPy's products: weighted sum {seconds(total)}")

    def progress(self, progress: SuiteProgress) -> None:
        """Say a gain of the objective, and that the best are compared; if verbose, every trial."""
        begins = progress.phase != self._phase
        self._progress, self._phase = progress, progress.phase
        if begins and progress.phase == "final":
            self._lines.say(phase_of(progress))
        elif self._verbose and progress.latest is not None:
            self._lines.say(
                attempt_of(progress, f"{progress.tasks[progress.place].member.label}: ")
            )
        elif self._gains(progress):
            self._shown = progress.value
            self._lines.say(f"trial {progress.trials}: {objective_of(progress)}")

    def result(self, result: SuiteResult) -> None:
        """Say what was found."""
        self._lines.end()
        show(outcome(result, self._session))

    def _gains(self, progress: SuiteProgress) -> bool:
        value, shown = progress.value, self._shown
        if value is None or progress.phase == "final":
            return False
        return shown is None or max(shown / value, value / shown) > LEAST_GAIN

    def _where(self) -> str:
        where = standing(self._progress)
        return where if self._progress is None else f"{where}; {objective_of(self._progress)}"
