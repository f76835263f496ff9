"""Tuning of several workloads, on a made-up machine that is quick and never noisy."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.measure.cluster.simulated import SimulatedBuilder, SimulatedRunner
from tests.scheduler.made_up_machine import Clock, MadeUpMachine
from tests.scheduler.suites.six_products import SPACES, Six, blind, shares, suite, tuned
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.records.measurement import NUMPY
from tilewright.measure.records.run import Run
from tilewright.scheduler.suites.allocation import in_turn
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.suites.tune import check_suite
from tilewright.scheduler.testing.landscape import MACHINE, knolls
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.events import SuiteProgress, SuiteResult
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target


def test_rivals_of_many_tasks_are_timed_in_the_comparison_that_decides(database: Database) -> None:
    machine = Six()
    baselines = [Baseline(space.workload, numpy_seconds=1e-3) for space in SPACES]
    tuned(database, machine, baselines=baselines)
    for job, (schedules, final) in zip(machine.jobs, machine.submitted, strict=True):
        assert job.rivals == ((NUMPY,) if final and len(schedules) == 1 else ())


def test_all_trials_are_made_and_kept(database: Database) -> None:
    machine = Six()
    result = tuned(database, machine)
    assert result.stopped is Stop.TRIALS
    assert result.trials == sum(task.trials for task in result.tasks) == 96
    assert shares(machine).total() == 96
    for task, space in zip(result.tasks, SPACES, strict=True):
        kept = [r.measurement for r in database.records(space.workload, MACHINE)]
        assert sum(m.round == "search" for m in kept) == task.trials > 0
        assert task.best is not None
        assert task.best.round == "final"
        finals = [m.score for m in kept if m.round == "final" and m.score is not None]
        assert task.latency == min(finals)
        assert task.gain is not None
        assert task.gain >= 0.9
    assert {job.rivals for job in machine.jobs} == {()}
    weights = [member.weight for member in suite().members]
    assert result.value == pytest.approx(
        sum(w * (task.latency or 0.0) for w, task in zip(weights, result.tasks, strict=True))
    )


def test_two_suites_on_one_executor_each_get_their_own_results(database: Database) -> None:
    halves = [(SPACES[:3], "first"), (SPACES[3:], "second")]
    found: dict[str, SuiteResult] = {}
    with closing(LocalExecutor(MACHINE, 1, SimulatedBuilder(), SimulatedRunner(0.0))) as executor:

        def tune(spaces: list[Space], session: str) -> None:
            half = Suite(session, tuple(Member(space.workload) for space in spaces))
            tuner = Tuner(
                *(half, MACHINE, database, executor),
                session=session,
                spaces=spaces,
                make_search=blind,
            )
            found[session] = tuner.run(trials=96, seconds=600)

        threads = [threading.Thread(target=tune, args=half) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for spaces, session in halves:
        result = found[session]
        assert (result.stopped, result.trials) == (Stop.TRIALS, 96)
        runs = {run.key: run.workload for run in database.runs(session)}
        assert set(runs.values()) == {space.workload for space in spaces}
        kept = [r for space in spaces for r in database.records(space.workload, MACHINE)]
        assert {r.run: r.workload for r in kept} == runs
        assert sum(r.measurement.round == "search" for r in kept) == 96


def test_a_run_is_the_same_every_time(tmp_path: Path) -> None:
    found = []
    for name in "ab":
        machine = Six()
        with Database(tmp_path / f"{name}.db") as database:
            result = tuned(database, machine, trials=64)
        found.append((machine.searched, [(trials, value) for trials, _, value in result.history]))
    assert found[0] == found[1]


def test_a_second_run_goes_on_and_repeats_nothing(database: Database) -> None:
    first, second = Six(), Six()
    before = tuned(database, first)
    after = tuned(database, second)
    assert after.resumed == 96
    assert after.trials == 96
    assert after.value is not None
    assert before.value is not None
    assert after.value <= before.value
    assert after.history[0][0] == 0
    for task, space in zip(before.tasks, SPACES, strict=True):
        both = [
            {s for job, (schedules, final) in zip(m.jobs, m.submitted, strict=True)
             if job.workload == space.workload and not final for s in schedules}
            for m in (first, second)
        ]  # fmt: skip
        assert task.best is not None
        assert both[0] & both[1] <= {task.best.schedule}


def test_the_runs_of_a_suite_have_one_session(database: Database) -> None:
    tuned(database, Six(), trials=24)
    runs = list(database.runs())
    assert {run.workload for run in runs} == {space.workload for space in SPACES}
    assert len({run.session for run in runs}) == 1
    assert runs[0].session
    assert {run.reason for run in runs} == {"trials"}


def test_a_workload_that_gains_nothing_stops_alone(database: Database) -> None:
    result = tuned(database, Six(), trials=2000, patience=24)
    assert result.stopped is Stop.PATIENCE
    assert {task.stopped for task in result.tasks} == {Stop.PATIENCE}
    assert result.trials < 2000
    assert len({task.trials for task in result.tasks}) > 1


def test_exhausted_spaces_end_the_run(database: Database) -> None:
    small = knolls()
    members = (Member(small.workload), Member(SPACES[0].workload))
    tuner = Tuner(
        Suite("two", members),
        MACHINE,
        database,
        Six(),
        spaces=[small, SPACES[0]],
        allocation=in_turn,
        make_search=blind,
    )
    result = tuner.run(trials=2 * len(set(small.enumerate())) + 64, seconds=600)
    assert result.tasks[0].stopped is Stop.EXHAUSTED
    assert result.tasks[1].stopped is Stop.TRIALS


def test_a_keyboard_interrupt_gives_the_best_so_far_of_all(database: Database) -> None:
    def interrupt(progress: SuiteProgress) -> None:
        if progress.value is not None:
            raise KeyboardInterrupt

    machine = Six()
    result = tuned(database, machine, on_progress=interrupt)
    assert result.stopped is Stop.INTERRUPTED
    assert result.value is not None
    assert machine.pending() == 0
    assert {run.reason for run in database.runs()} == {"interrupted"}


def test_progress_counts_all_workloads(database: Database) -> None:
    events: list[SuiteProgress] = []
    result = tuned(database, Six(), on_progress=events.append)
    searched = [e for e in events if e.phase == "search" and e.latest is not None]
    assert [e.trials for e in searched] == list(range(1, 97))
    assert {e.place for e in searched} == set(range(len(SPACES)))
    values = [e.value for e in searched if e.value is not None]
    assert values == sorted(values, reverse=True)
    assert [value for _, _, value in result.history] == sorted(set(values), reverse=True)


def products(count: int) -> Suite:
    return Suite("many", tuple(Member(workload("matmul", m=m, n=8, k=8)) for m in range(1, count)))


def test_many_workloads_heed_the_seconds_while_their_tasks_begin(database: Database) -> None:
    """Those that there is no time for have no run, and are counted none the less."""
    suite, clock = products(40), Clock()
    machine = MadeUpMachine(clock=clock)
    made = Tuner(suite, MACHINE, database, machine)
    begin, slow = database.begin_run, pytest.MonkeyPatch()

    def slowly(run: Run) -> None:
        clock.sleep(1.0)
        begin(run)

    with slow.context() as patch:
        patch.setattr("tilewright.scheduler.tuning.ledger.time", clock)
        patch.setattr(database, "begin_run", slowly)
        result = made.run(trials=1000, seconds=9.5)
    assert result.stopped is Stop.SECONDS
    assert len(result.tasks) == len(suite.members)
    assert 1 <= len(list(database.runs())) <= 10
    assert {run.reason for run in database.runs()} == {"seconds"}


def test_a_signal_is_heeded_while_tasks_begin(database: Database) -> None:
    begun: list[Run] = []
    begin, patch = database.begin_run, pytest.MonkeyPatch()

    def signalled(run: Run) -> None:
        begun.append(run)
        begin(run)
        if len(begun) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with patch.context() as patched:
        patched.setattr(database, "begin_run", signalled)
        result = Tuner(products(40), MACHINE, database, MadeUpMachine()).run(1000, 600)
    assert result.stopped is Stop.INTERRUPTED
    assert len(begun) == 3


def test_a_suite_that_there_is_no_time_to_look_at_is_refused() -> None:
    with pytest.raises(InputError, match="time ran out after checking 64 of the 99 workloads"):
        check_suite(products(100), detect_target("cpu"), Objective.LATENCY, until=0.0)
