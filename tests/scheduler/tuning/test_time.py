"""A run keeps its time, whatever the machine does."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.scheduler.made_up_machine import Clock, MadeUpMachine
from tests.scheduler.tuning.made_up_runs import rows, tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Job, Result
from tilewright.scheduler.opening import opened
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.events import TuningResult
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.tuner import tune


def test_stops_in_time_with_the_final_comparison_done(database: Database, clock: Clock) -> None:
    space, machine = hills(), MadeUpMachine(pause=0.04, clock=clock)
    result = tuner(space, database, machine).run(trials=10_000, seconds=4)
    assert clock.now < 4.5
    assert result.stopped is Stop.SECONDS
    assert result.best is not None
    assert result.best.round == "final"


@pytest.mark.parametrize("trials", [64, 18])  # 18 are all queued when time gets short
def test_what_has_not_started_gives_way_to_the_final_comparison(
    database: Database, clock: Clock, trials: int
) -> None:
    class Stalling(MadeUpMachine):
        """Takes longer and longer, which no pace foresees."""

        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            if len(self.searched) > 16 and not self.submitted[-1][1]:
                clock.sleep(timeout or 0.0)
                return []
            return super().results(timeout, *jobs)

    result = tuner(hills(), database, Stalling()).run(trials=trials, seconds=4)
    assert result.stopped is Stop.SECONDS
    assert 0 < result.trials <= 16
    assert result.best is not None
    assert result.best.round == "final"


@pytest.mark.parametrize("late", ["search", "final"])
def test_results_that_come_late_are_compared_all_the_same(
    database: Database, clock: Clock, late: str
) -> None:
    class Late(MadeUpMachine):
        """Gives what it searched in its second batch, or compared, when the time is just up."""

        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            final = self.submitted[-1][1]
            is_late = final if late == "final" else len(self.submitted) > 1 and not final
            if is_late and clock.now < 2.2:
                clock.sleep(timeout or 0.0)
                return []
            return super().results(timeout, *jobs)

        def cancel(self, job: Job) -> None:
            """It all runs."""

    result = tuner(hills(), database, Late()).run(trials=64, seconds=2)
    assert clock.now < 2 + 2
    assert result.best is not None
    assert result.best.round == "final"


def test_what_is_known_when_the_time_is_up_is_kept(database: Database, clock: Clock) -> None:
    class JustDone(MadeUpMachine):
        """Gives its first result when the time is just up."""

        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            if clock.now < 2:
                clock.sleep(timeout or 0.0)
                return []
            return super().results(timeout, *jobs)

        def cancel(self, job: Job) -> None:
            """It all runs."""

    space, machine = hills(), JustDone()
    result = tuner(space, database, machine).run(trials=1, seconds=2)
    assert clock.now < 2 + 1
    assert result.trials == 1
    assert rows(space, database) == machine.searched


def test_a_machine_that_hangs_does_not_keep_the_tuner(database: Database, clock: Clock) -> None:
    class Hanging(MadeUpMachine):
        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            clock.sleep(timeout or 0.0)
            return []

    result = tuner(hills(), database, Hanging()).run(trials=64, seconds=1)
    assert clock.now < 2
    assert result.stopped is Stop.SECONDS
    assert result.best is None


def test_time_that_had_passed_before_is_part_of_the_time_allowed(database: Database) -> None:
    machine, began = MadeUpMachine(), time.monotonic() - 100
    result = tuner(hills(), database, machine).run(trials=64, seconds=60, began=began)
    assert result.stopped is Stop.SECONDS
    assert result.trials == 0
    assert result.seconds >= result.before_seconds >= 100


def test_what_tune_does_before_it_searches_is_part_of_the_time_allowed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened_late(database: str) -> AbstractContextManager[Database]:
        clock.sleep(30)
        return opened(database)

    monkeypatch.setattr("tilewright.scheduler.tuning.tuner.time", clock)
    monkeypatch.setattr("tilewright.scheduler.tuning.set_up.opened", opened_late)
    machine = MadeUpMachine()
    result = tune("matmul m=64 n=64 k=64", "cpu", tmp_path / "x.db", 9, 20, executor=machine)
    assert result.stopped is Stop.SECONDS
    assert result.before_seconds == 30
    assert not machine.submitted


def test_what_runs_on_is_left_behind_when_the_time_is_up(database: Database, clock: Clock) -> None:
    class Hanging(MadeUpMachine):
        dropped: Job | None = None

        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            clock.sleep(timeout or 0.0)
            return []

        def cancel(self, job: Job) -> None:
            """It all runs."""

        def drop(self, job: Job) -> None:
            self.dropped = job

    machine = Hanging()
    tuner(hills(), database, machine).run(trials=64, seconds=1)
    assert machine.dropped is not None
    assert machine.pending()


def test_time_is_accounted_for(database: Database) -> None:
    machine = MadeUpMachine(pause=0.005, clock=time)
    result: TuningResult = tuner(hills(), database, machine).run(48, 60)
    own = result.search_seconds + result.lowering_seconds + result.database_seconds
    assert result.waiting_seconds >= 48 * 0.005
    assert own <= result.own_seconds
    assert 0 < result.idle_seconds <= result.own_seconds
    assert result.overhead == result.idle_seconds / result.seconds
