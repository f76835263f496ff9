"""A run that nobody measures for any more says so in a line, and ends soon."""

from __future__ import annotations

import warnings

import pytest

from tests.scheduler.made_up_machine import Clock, MadeUpMachine
from tests.scheduler.tuning.made_up_runs import tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Job, Result
from tilewright.scheduler.testing.landscape import MACHINE, hills
from tilewright.scheduler.tuning.runs.abandoned import PATIENCE_SECONDS, TOLD_SECONDS, Abandoned
from tilewright.scheduler.tuning.states import Stop
from tilewright.spaces.target import Target


class Leaving(MadeUpMachine):
    """Workers leave when so many candidates were measured, or when the best are compared; and are
    there again at ``back`` seconds, if at all."""

    def __init__(self, clock: Clock, measures: int, back: float = float("inf")) -> None:
        super().__init__(pause=0.1, clock=clock)
        self._measures, self._back, self._done = measures, back, 0
        self._time = clock

    def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
        if self.lacking(MACHINE):
            self._time.sleep(timeout or 0.0)
            return []
        found = super().results(timeout, *jobs)
        self._done += len(found)
        return found

    def lacking(self, target: Target) -> str:
        final = bool(self.submitted) and self.submitted[-1][1] and self._measures < 0
        gone = final or 0 <= self._measures <= self._done
        return "nobody is there" if gone and self._time.now < self._back else ""


@pytest.mark.parametrize("measures", [0, 20])
def test_a_run_without_workers_ends_soon(database: Database, clock: Clock, measures: int) -> None:
    machine = Leaving(clock, measures)
    with pytest.warns(RuntimeWarning, match="^nobody is there; the run ends in 2[67] s unless"):
        result = tuner(hills(), database, machine).run(trials=1000, seconds=600)
    assert result.stopped is Stop.WORKERS
    assert PATIENCE_SECONDS < clock.now < PATIENCE_SECONDS + 10
    assert (result.best is not None) == (measures > 0)


def test_one_that_comes_back_in_time_is_waited_for(database: Database, clock: Clock) -> None:
    machine = Leaving(clock, 20, back=25.0)
    with pytest.warns(RuntimeWarning, match="nobody is there"):
        result = tuner(hills(), database, machine).run(trials=40, seconds=600)
    assert result.stopped is Stop.TRIALS
    assert result.trials == 40


def test_workers_that_leave_in_the_last_comparison_are_not_waited_for(
    database: Database, clock: Clock
) -> None:
    machine = Leaving(clock, -1)
    with pytest.warns(RuntimeWarning, match="nobody is there"):
        result = tuner(hills(), database, machine).run(trials=40, seconds=600)
    assert result.stopped is Stop.TRIALS
    assert clock.now < PATIENCE_SECONDS + 20
    assert result.best is not None


def test_a_moment_without_workers_is_not_worth_a_line() -> None:
    machine = Leaving(Clock(), 0)
    watch = Abandoned(machine, {MACHINE})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not watch.is_so(0.0)
        assert not watch.is_so(TOLD_SECONDS / 2)
        machine._back = -1.0
        assert not watch.is_so(100.0)
        machine._back = float("inf")
        assert not watch.is_so(200.0)
