"""What a machine loses is recorded, and is neither a trial nor a failure of a schedule."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.scheduler.made_up_machine import MadeUpMachine
from tests.scheduler.tuning.made_up_runs import rows, tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Candidate, ErrorKind, Measurement, Status
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.testing.landscape import hills, knolls
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.task import LOST_IN_A_ROW
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


class Losing(MadeUpMachine):
    """A machine that loses the candidates of some batches, by their number."""

    def __init__(self, batches: range) -> None:
        super().__init__()
        self.batches = batches

    def _measure(self, candidate: Candidate) -> Measurement:
        schedule = candidate.schedule
        number = next(i for i, (among, _) in enumerate(self.submitted) if schedule in among)
        if number not in self.batches:
            return super()._measure(candidate)
        kind, text = ErrorKind.COMPILER_LOST, "No space left on device"
        now = time.time()
        return Measurement(schedule, Status.LOST, error_kind=kind, error_text=text, started_at=now)


def test_what_the_machine_lost_is_recorded_and_is_no_trial(database: Database) -> None:
    class Listening(RandomSearch):
        def __init__(self, space: Space) -> None:
            super().__init__(space, 0)
            self.told: list[Schedule] = []

        def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
            self.told += [schedule for schedule, _ in results]
            super().tell(results)

    space, machine = hills(), Losing(range(1, 2))
    search = Listening(space)
    result = tuner(space, database, machine, search).run(trials=48, seconds=600)
    lost = machine.submitted[1][0]
    assert result.stopped is Stop.TRIALS
    assert (result.trials, result.lost) == (48, len(lost))
    assert result.lacking == ""
    assert not result.failures.get("compiler_lost")
    assert len(machine.searched) == 48 + len(lost)
    assert not set(search.told) & set(lost)
    assert set(lost) <= set(rows(space, database))


def test_what_was_lost_is_asked_again_by_the_next_run(database: Database) -> None:
    space = knolls()
    tuner(space, database, Losing(range(1))).run(trials=1000, seconds=600)
    lost = {r.schedule for r in database.records(space.workload) if r.measurement.lost}
    assert lost
    machine = MadeUpMachine()
    result = tuner(space, database, machine).run(trials=1000, seconds=600)
    assert result.resumed + result.trials == len(set(space.enumerate()))
    assert lost <= set(machine.searched)


def test_a_machine_that_only_fails_ends_the_run_soon(database: Database) -> None:
    machine = Losing(range(2, 10_000))
    result = tuner(hills(), database, machine).run(trials=10_000, seconds=600)
    assert result.stopped is Stop.MACHINE
    assert result.lacking == "No space left on device"
    assert result.best is not None
    assert len(machine.searched) <= 32 + 3 * 16
    assert not any(final for _, final in machine.submitted)


def test_it_ends_at_the_sixteenth_loss_in_a_row(database: Database) -> None:
    machine = Losing(range(10_000))
    machine.together = 1
    result = tuner(hills(), database, machine).run(trials=10_000, seconds=600)
    assert (result.stopped, result.lost) == (Stop.MACHINE, LOST_IN_A_ROW)
