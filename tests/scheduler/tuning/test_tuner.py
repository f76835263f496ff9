"""The tuner's logic, on a made-up machine that is quick and never noisy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from measure.database import Database
from measure.records.measurement import Candidate, ErrorKind, Job, Measurement, Result, Status
from measure.records.record import Record
from scheduler.strategies.evolutionary import EvolutionarySearch
from scheduler.strategies.random_search import RandomSearch
from scheduler.strategies.search import Search
from scheduler.testing.landscape import Guess, hills, hills_latency, knolls, trees
from scheduler.tuning.progress import Progress, Stop, TuningResult
from scheduler.tuning.task import LOST_IN_A_ROW
from scheduler.tuning.tuner import Tuner
from spaces.errors import InputError
from spaces.schedule import Schedule
from spaces.space import Space
from tests.scheduler.made_up_machine import Clock, MadeUpMachine


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time by which the tuner goes."""
    made = Clock()
    monkeypatch.setattr("scheduler.tuning.progress.time", made)
    return made


def tuner(
    space: Space, database: Database, machine: MadeUpMachine, search: Search | None = None
) -> Tuner:
    search = search or EvolutionarySearch(space, trees(space), Guess())
    return Tuner(space.workload, space.target, database, machine, search, space=space)


def rows(space: Space, database: Database, name: str = "search") -> list[Schedule]:
    every = database.records(space.workload, space.target)
    return [record.schedule for record in every if record.measurement.round == name]


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
    *_, (finalists, final) = machine.submitted
    assert final
    assert len(finalists) == 8
    assert rows(space, database, "final") == finalists
    assert result.best is not None
    assert result.best.round == "final"
    assert result.best.score == min(hills_latency(s.values) for s in finalists)


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
    assert slow in machine.submitted[-1][0]
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


def test_an_exhausted_space_ends_the_run(database: Database) -> None:
    space, machine = knolls(), MadeUpMachine()
    result = tuner(space, database, machine).run(trials=1000, seconds=600)
    assert result.stopped is Stop.EXHAUSTED
    assert set(machine.searched) == set(space.enumerate())


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
    *_, (compared, final) = machine.submitted
    assert final
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


def test_a_failure_in_the_final_comparison_withdraws_a_schedule(database: Database) -> None:
    class Treacherous(MadeUpMachine):
        def _measure(self, candidate: Candidate) -> Measurement:
            measured = super()._measure(candidate)
            if not candidate.job.final or candidate.schedule != self.submitted[-1][0][0]:
                return measured
            kind = ErrorKind.WRONG
            return Measurement(
                candidate.schedule, Status.ERROR, error_kind=kind, round="final", started_at=2.0
            )

    machine = Treacherous()
    result = tuner(hills(), database, machine).run(trials=32, seconds=600)
    assert result.best is not None
    assert result.best.schedule == machine.submitted[-1][0][1]


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


def test_time_is_accounted_for(database: Database) -> None:
    machine = MadeUpMachine(pause=0.005, clock=time)
    result: TuningResult = tuner(hills(), database, machine).run(48, 60)
    own = result.search_seconds + result.lowering_seconds + result.database_seconds
    assert result.waiting_seconds >= 48 * 0.005
    assert own <= result.own_seconds
    assert 0 < result.idle_seconds <= result.own_seconds
    assert result.overhead == result.idle_seconds / result.seconds


@pytest.mark.parametrize("budget", [(0, 1.0, None), (1, -1.0, None), (1, 1.0, 0)])
def test_a_budget_of_nothing_is_refused(
    database: Database, budget: tuple[int, float, int | None]
) -> None:
    with pytest.raises(InputError, match="is out of range"):
        tuner(hills(), database, MadeUpMachine()).run(*budget)


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
