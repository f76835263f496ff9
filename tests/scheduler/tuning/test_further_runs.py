"""Runs that go on with what earlier ones measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.scheduler.made_up_machine import MadeUpMachine
from tests.scheduler.tuning.made_up_runs import rows, tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Candidate, Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.testing.landscape import hills
from tilewright.spaces.schedule import Schedule


def test_a_second_run_goes_on_and_repeats_nothing(database: Database) -> None:
    space, first, second = hills(), MadeUpMachine(), MadeUpMachine()
    before = tuner(space, database, first).run(trials=48, seconds=600)
    after = tuner(space, database, second).run(trials=48, seconds=600)
    assert after.resumed == 48
    assert after.trials == 48
    assert before.best is not None
    assert set(first.searched) & set(second.searched) == {before.best.schedule}
    assert after.best is not None
    assert (after.best.score or 9) <= (before.best.score or 0)


def test_the_best_of_an_earlier_comparison_is_compared_again(database: Database) -> None:
    class Warming(MadeUpMachine):
        """What is compared takes longer, as on a chip that is hot by then."""

        def _measure(self, candidate: Candidate) -> Measurement:
            measured = super()._measure(candidate)
            if not candidate.job.final or measured.score is None:
                return measured
            return replace(measured, score=2 * measured.score)

    before = tuner(hills(), database, Warming()).run(trials=48, seconds=600)
    machine = Warming()
    tuner(hills(), database, machine).run(trials=48, seconds=600)
    compared = machine.compared[0]
    assert before.best is not None
    assert before.best.schedule in compared
    assert set(compared) & set(machine.searched)


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    """With nothing in flight at the interruption, the asks after it are the very same."""
    space = hills()

    def run(name: str, *trials: int) -> list[Schedule]:
        with Database(tmp_path / name) as database:
            for count in trials:
                tuner(space, database, MadeUpMachine()).run(count, 60)
            return rows(space, database)

    assert run("one", 16, 16) == run("another", 16, 16)


def test_rows_of_another_version_are_passed_over(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    schedule = next(space.enumerate())
    old = Measurement(schedule, Status.OK, 1e-9, (1e-9,), started_at=1.0)
    database.record(Record(space.workload, space.target, "hills.0", old))
    result = tuner(space, database, machine).run(trials=16, seconds=600)
    assert result.resumed == 0
    assert result.best is not None
    assert result.best.schedule != schedule
