"""The tuner's logic, on a made-up machine that is quick and never noisy."""

from __future__ import annotations

import pytest

from tests.scheduler.made_up_machine import MadeUpMachine
from tests.scheduler.tuning.made_up_runs import rows, tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import (
    Candidate,
    ErrorKind,
    Job,
    Measurement,
    Result,
    Status,
)
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.testing.landscape import hills, hills_latency, knolls
from tilewright.scheduler.tuning.events import Progress
from tilewright.scheduler.tuning.states import Stop
from tilewright.spaces.errors import InputError


def test_a_run_measures_what_was_allowed_and_records_all(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    result = tuner(space, database, machine).run(trials=64, seconds=600)
    assert result.stopped is Stop.TRIALS
    assert result.trials == 64
    assert rows(space, database) == machine.searched
    assert len(set(machine.searched)) == 64
    assert result.failures.get("crash", 0) == sum(
        s["pack"] == "none" and s["kc"] == 256 for s in machine.searched
    )


def test_the_best_is_measured_again_before_it_is_declared(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    result = tuner(space, database, machine).run(trials=48, seconds=600)
    *before, last = machine.compared
    first, second, again, third, _ = before
    assert [len(each) for each in machine.compared] == [8, 4, 4, 2, 2, 1]
    assert set(last) < set(third) < set(second) == set(again) < set(first)
    every = database.records(space.workload, space.target)
    rounds = [record.measurement.round for record in every][48:]
    behind = ["preliminary"] * 8  # who is first among those whose results came together is not
    assert rounds == [*behind, *(2 * ["final", *behind[:3]]), *(2 * ["final", behind[0]]), "final"]
    assert rows(space, database, "final")[-1:] == last
    assert result.best is not None
    assert result.best.round == "final"
    assert result.best.score == min(hills_latency(s.values) for s in first)


def test_a_given_executor_is_left_with_nothing(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()

    def interrupt(progress: Progress) -> None:
        if progress.trials == 21:
            raise KeyboardInterrupt

    result = tuner(space, database, machine).run(trials=64, seconds=600, on_progress=interrupt)
    assert result.stopped is Stop.INTERRUPTED
    assert machine.pending() == 0


def test_luck_in_the_search_does_not_win(database: Database) -> None:
    space = knolls()
    slow = max(space.enumerate(), key=lambda s: hills_latency(s.values))
    machine = MadeUpMachine(lucky=[slow])
    result = tuner(space, database, machine).run(trials=1000, seconds=600)
    assert slow in machine.compared[0]
    assert result.best is not None
    assert result.best.schedule != slow


def test_the_next_batch_is_queued_before_the_last_is_done(database: Database) -> None:
    machine = MadeUpMachine()
    tuner(hills(), database, machine).run(trials=64, seconds=600)
    assert machine.most_pending > 16


def test_more_batches_are_queued_where_building_takes_long(database: Database) -> None:
    machine = MadeUpMachine()
    machine.ahead = 2
    tuner(hills(), database, machine).run(trials=96, seconds=600)
    assert 2 * 16 < machine.most_pending <= 3 * 16


def test_the_runners_know_the_latency_to_beat(database: Database) -> None:
    machine = MadeUpMachine()
    result = tuner(hills(), database, machine).run(trials=32, seconds=600)
    assert machine.best == min(latency for _, _, latency in result.history)


def test_stops_when_nothing_gets_better(database: Database) -> None:
    space = hills()
    machine = MadeUpMachine()
    search = RandomSearch(space, 0)
    result = tuner(space, database, machine, search).run(trials=5000, seconds=600, patience=40)
    assert result.stopped is Stop.PATIENCE
    gains = [trial for trial, _, _ in result.history]
    waits = zip(gains, [*gains[1:], result.trials], strict=True)
    given_up = next(gain + 40 for gain, following in waits if following - gain >= 40)
    assert result.trials <= given_up + 2 * 16 + 5  # what was under way is still measured


def test_an_exhausted_space_ends_the_run(database: Database) -> None:
    space, machine = knolls(), MadeUpMachine()
    result = tuner(space, database, machine).run(trials=1000, seconds=600)
    assert result.stopped is Stop.EXHAUSTED
    assert set(machine.searched) == set(space.enumerate())


def test_a_failure_in_the_final_comparison_withdraws_a_schedule(database: Database) -> None:
    class Treacherous(MadeUpMachine):
        def _measure(self, candidate: Candidate) -> Measurement:
            measured = super()._measure(candidate)
            if not candidate.job.final or candidate.schedule != self.compared[0][0]:
                return measured
            kind = ErrorKind.WRONG
            return Measurement(
                candidate.schedule, Status.ERROR, error_kind=kind, round="final", started_at=2.0
            )

    machine = Treacherous()
    result = tuner(hills(), database, machine).run(trials=32, seconds=600)
    assert result.best is not None
    assert [result.best.schedule] == machine.compared[-1]
    assert machine.compared[0][0] not in machine.compared[1]


def test_a_keyboard_interrupt_gives_the_best_so_far(database: Database) -> None:
    class Interrupted(MadeUpMachine):
        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            if len(self.submitted) > 2:
                raise KeyboardInterrupt
            return super().results(timeout, *jobs)

    space = hills()
    result = tuner(space, database, Interrupted()).run(trials=64, seconds=600)
    assert result.stopped is Stop.INTERRUPTED
    assert result.trials == len(rows(space, database)) > 0
    assert result.best is not None


def test_progress_is_reported_for_every_trial(database: Database) -> None:
    events: list[Progress] = []
    result = tuner(hills(), database, MadeUpMachine()).run(32, 60, on_progress=events.append)
    searched = [e for e in events if e.phase == "search" and e.latest is not None]
    assert [e.trials for e in searched] == list(range(1, 33))
    assert [e.elapsed for e in events] == sorted(e.elapsed for e in events)
    assert {e.phase for e in events} == {"search", "final"}
    best = [e.best.score for e in searched if e.best is not None and e.best.score is not None]
    assert best == sorted(best, reverse=True)
    assert result.seconds >= result.waiting_seconds + result.search_seconds


@pytest.mark.parametrize("budget", [(0, 1.0, None), (1, -1.0, None), (1, 1.0, 0)])
def test_a_budget_of_nothing_is_refused(
    database: Database, budget: tuple[int, float, int | None]
) -> None:
    with pytest.raises(InputError, match="is out of range"):
        tuner(hills(), database, MadeUpMachine()).run(*budget)
