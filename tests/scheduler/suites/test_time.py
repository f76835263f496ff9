"""Suites keep their time, whatever the machine does."""

from __future__ import annotations

from pathlib import Path

from tests.scheduler.made_up_machine import Clock
from tests.scheduler.suites.six_products import Six, tuned
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Candidate, Job, Measurement, Result, Status
from tilewright.scheduler.tuning.states import Stop


def test_time_is_kept_with_all_comparisons_done(database: Database, clock: Clock) -> None:
    result = tuned(database, Six(pause=0.04, clock=clock), trials=100_000, seconds=16)
    assert clock.now < 18
    assert result.stopped is Stop.SECONDS
    for task in result.tasks:
        assert task.best is not None
        assert task.best.round == "final"


def test_where_time_is_short_each_gets_a_kernel_before_any_are_compared(
    database: Database, clock: Clock
) -> None:
    """What each candidate takes is three times what is expected; all are right."""

    class Slow(Six):
        together = 1

        def _measure(self, candidate: Candidate) -> Measurement:
            round = candidate.job.round
            return Measurement(
                candidate.schedule, Status.OK, 1.0, (1.0,), round=round, started_at=1.0
            )

    result = tuned(database, Slow(pause=0.19, clock=clock), trials=100_000, seconds=6)
    assert result.stopped is Stop.SECONDS
    assert result.value is not None
    assert result.seconds <= 6 + 2


def test_devices_that_compare_side_by_side_leave_more_time_to_search(
    tmp_path: Path, clock: Clock
) -> None:
    def trials(devices: int) -> int:
        machine = Six(pause=0.04, clock=clock)
        machine.devices = devices
        clock.now = 0.0
        with Database(tmp_path / f"{devices}.db") as own:
            return tuned(own, machine, trials=100_000, seconds=16).trials

    assert trials(3) > trials(1)


def test_a_machine_that_hangs_does_not_keep_the_tuner(database: Database, clock: Clock) -> None:
    class Hanging(Six):
        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            clock.sleep(timeout or 0.0)
            return []

    result = tuned(database, Hanging(), seconds=1)
    assert clock.now < 3
    assert result.stopped is Stop.SECONDS
    assert result.value is None
