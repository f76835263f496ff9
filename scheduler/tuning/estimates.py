"""Estimate the time that measuring a task takes, from its measurements so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Measurement
from tilewright.scheduler.tuning.pace import Pace, Rate, Worth
from tilewright.scheduler.tuning.scoreboard import Scoreboard


class Estimates:
    """Applies :class:`Pace` to one task, with its measured rates and results. Times are in seconds.

    ``board`` holds the task's results, ``worth`` the worth of its final comparison.
    """

    def __init__(
        self, pace: Pace, executor: Executor, board: Scoreboard, worth: Callable[[], Worth]
    ) -> None:
        self._pace, self._executor, self._board, self._worth = pace, executor, board, worth
        self._rate, self._final_rate = Rate(), Rate()

    def note(self, seconds: float, measured: Sequence[Measurement], final: bool) -> None:
        """Take note of results that came after ``seconds`` without any, of the search or of a
        ``final`` comparison."""
        (self._final_rate if final else self._rate).note(seconds, measured)

    @property
    def batch_size(self) -> int:
        """Candidates to ask for at a time."""
        return self._pace.batch_size(self._rate.run, self._executor.devices)

    @property
    def batch_seconds(self) -> float:
        """Estimated seconds to build and run a batch, from CPU time.

        Decisions by it must not depend on the load of the machine.
        """
        return self.batch_size * self._pace.candidate_seconds(self._rate.work)

    @property
    def candidate_seconds(self) -> float:
        """Wall seconds for one candidate among others."""
        return self._pace.candidate_seconds(self._rate.each)

    @property
    def reserve(self) -> float:
        """Seconds that the final comparison needs."""
        return self._pace.reserve(*self._so_far)

    def comparing(self, count: int) -> float:
        """Return the seconds to compare so many, and then the best of them until one wins."""
        return self._pace.comparing(count, self._rate.each, self._best, self._final_rate.each)

    def finalists(self, left: float, late: float) -> int:
        """Return the finalists that can be compared in ``left`` seconds, or begun ``late`` seconds
        after."""
        return self._pace.comparable(left, late, *self._so_far)

    def affordable(self, left: float) -> int:
        """Say how many more candidates can be built and run in ``left`` seconds, with a comparison
        after."""
        return self._pace.affordable(left, *self._so_far)

    @property
    def _best(self) -> float | None:
        """The latency of what ranks first."""
        return self._board.best.score if self._board.best is not None else None

    @property
    def _so_far(self) -> tuple[float | None, float | None, Worth, int]:
        """The arguments for :class:`Pace`: rate, best latency, worth, right schedules."""
        return self._rate.each, self._best, self._worth(), self._board.right
