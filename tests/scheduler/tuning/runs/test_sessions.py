"""What became of jobs, and what is left of them, by what the database says."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from tilewright.measure.database import Database
from tilewright.measure.records.run import Run
from tilewright.measure.tables.engine import transaction
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    a_run,
    attempt,
    lost,
    measured,
)
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.suite import Member
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.runs.process import is_gone, this_process
from tilewright.scheduler.tuning.runs.run_log import RunLog, new_run
from tilewright.scheduler.tuning.runs.sessions import (
    LOST_AFTER,
    SessionState,
    sessions,
    suite_of,
    target_here,
    unfinished_runs,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

OTHER = workload("matmul", m=8, n=8, k=8)
THIRD = workload("matmul", m=9, n=9, k=9)
BUDGET = {"trials": 16, "seconds": 60.0, "patience": 9}


def begun(key: str, ago: float, beat: float | None = None, **more) -> Run:
    """A run that began so many seconds ago, and lived until ``beat`` seconds ago."""
    now = time.time()
    heartbeat = now - (ago if beat is None else beat)
    run = a_run(key, started_at=now - ago, heartbeat=heartbeat)
    return replace(run, configuration=BUDGET, **more)


def test_what_became_of_jobs(database):
    for key, beat in (("alive", 1.0), ("dead", LOST_AFTER + 1), ("done", 900.0)):
        database.begin_run(begun(key, 1000.0, beat, session=key))
    database.end_run("done", "patience")
    database.begin_run(begun("alone", 1000.0, session=""))
    now = time.time()
    found = {session.name: session for session in sessions(database)}
    assert {name: session.state(now) for name, session in found.items()} == {
        "alive": SessionState.RUNNING,
        "dead": SessionState.LOST,
        "done": SessionState.ENDED,
        "alone": SessionState.LOST,
    }
    assert found["done"].reasons == "patience"


def test_a_job_of_several_workloads_lives_as_long_as_one_of_them(database):
    database.begin_run(begun("one", 100.0, 99.0))
    database.begin_run(begun("two", 50.0, 1.0, workload=OTHER))
    (session,) = sessions(database)
    assert [run.workload for run in session.runs] == [WORKLOAD, OTHER]
    assert session.state(time.time()) is SessionState.RUNNING
    assert (session.heartbeat, session.started_at) == (
        session.runs[1].heartbeat,
        session.runs[0].started_at,
    )
    database.end_run("two", "trials")
    (session,) = sessions(database)
    assert session.state(time.time()) is SessionState.LOST


def test_what_a_lost_job_left_undone(database):
    run = begun("lost", 100.0, 80.0)
    database.begin_run(run)
    database.begin_run(begun("done", 100.0, workload=OTHER))
    database.end_run("done", "seconds")
    records = [attempt(m) for m in (measured(1, 1.0), measured(2, 1.0), lost(3))]
    final = attempt(measured(2, 1.0, "final"))
    database.record_all([replace(record, run="lost") for record in (*records, final)])
    age(database, "lost", run.started_at + 20.0)
    (rest,) = unfinished_runs(database, "nightly")
    assert rest.run.key == "lost"
    assert rest.budget.seconds == pytest.approx(40.0)
    assert replace(rest.budget, seconds=40.0) == Budget(14, 40.0, 9)


def age(database: Database, key: str, heartbeat: float) -> None:
    """Set back when a run was heard of last."""
    with transaction(database._writer) as connection:
        sql = "UPDATE runs SET heartbeat = ? WHERE key = ?"
        connection.exec_driver_sql(sql, (heartbeat, key))


def test_the_latest_run_of_a_workload_says_what_is_left(database):
    database.begin_run(begun("first", 1000.0, 990.0))
    second = begun("second", 500.0, 490.0)
    database.begin_run(replace(second, configuration=BUDGET | {"trials": 5, "seconds": 30.0}))
    (rest,) = unfinished_runs(database, "nightly")
    assert (rest.run.key, rest.budget.trials) == ("second", 5)
    assert rest.budget.seconds == pytest.approx(20.0)
    database.end_run("second", "interrupted")
    age(database, "second", second.started_at + 29.5)
    with pytest.raises(InputError, match="nightly has used up its seconds"):
        unfinished_runs(database, "nightly")


def test_what_was_killed_in_its_last_comparison_is_compared_when_it_is_resumed(database):
    run = begun("killed", 100.0, 80.0)
    database.begin_run(run)
    records = [attempt(measured(n, float(n), "search")) for n in range(1, BUDGET["trials"] + 1)]
    records.append(attempt(measured(1, 1.0, "preliminary")))
    database.record_all([replace(record, run="killed") for record in records])
    age(database, "killed", run.started_at + 20.0)
    (rest,) = unfinished_runs(database, "nightly")
    assert rest.budget.trials == 1
    assert rest.budget.seconds == pytest.approx(40.0)


def of_suite(key: str, weight: object, **more) -> Run:
    told = {"suite": "two", "objective": "speedup", "name": key, "weight": weight}
    return replace(begun(key, 100.0, 80.0, **more), configuration=BUDGET | told)


def test_the_runs_of_a_suite_share_what_is_left(database):
    runs = (of_suite("one", 3.0), of_suite("two", 0.5, workload=OTHER))
    for run in runs:
        database.begin_run(run)
    for key, number in (("one", 1), ("one", 2), ("two", 3)):
        database.record(replace(attempt(measured(number, 1.0)), run=key))
    heard = min(run.started_at for run in runs) + 20.0
    for run in runs:
        age(database, run.key, heard)
    (rest,) = unfinished_runs(database, "nightly")
    assert rest.budget.seconds == pytest.approx(40.0)
    assert replace(rest.budget, seconds=40.0) == Budget(13, 40.0, 9)
    suite, objective = suite_of(rest)
    assert suite.members == (Member(WORKLOAD, 3.0, "one"), Member(OTHER, 0.5, "two"))
    assert (suite.title, objective) == ("two", Objective.SPEEDUP)


def test_a_workload_of_a_suite_that_stopped_alone_has_used_of_its_budget(database):
    database.begin_run(of_suite("earlier", 1.0, workload=THIRD))
    told = {**of_suite("one", 3.0).configuration, "seconds": 900.0, "trials": 40}
    database.begin_run(replace(of_suite("one", 3.0), configuration=told))
    database.begin_run(replace(of_suite("two", 1.0, workload=OTHER), configuration=told))
    for run, number in (("earlier", 1), ("one", 2), ("two", 3), ("two", 4)):
        database.record(replace(attempt(measured(number, 1.0)), run=run))
    for key, reason in (("earlier", "patience"), ("two", "patience"), ("one", "interrupted")):
        database.end_run(key, reason)
    (rest,) = unfinished_runs(database, "nightly")
    assert [run.key for run in rest.runs] == ["one"]
    assert rest.budget.trials == 40 - 3


def test_the_sections_of_a_suite_are_known_when_it_is_resumed(database):
    run, sections = of_suite("one", 3.0), {"decode": 1.0, "prefill": 2.0}
    told = {**run.configuration, "sections": sections}
    database.begin_run(replace(run, configuration=told))
    (unfinished,) = unfinished_runs(database, "nightly")
    suite, _ = suite_of(unfinished)
    assert suite.members == (Member.of_sections(WORKLOAD, sections, "one"),)


def test_a_suite_that_is_malformed_is_said_in_a_sentence(database):
    database.begin_run(of_suite("one", -1.0))
    (rest,) = unfinished_runs(database, "nightly")
    with pytest.raises(InputError, match=r"run one cannot be resumed: weight=-1.0 is out of"):
        suite_of(rest)


def test_what_runs_cannot_be_resumed(database):
    database.begin_run(begun("9af0", 1000.0, 1.0))
    with pytest.raises(InputError, match=r"nightly is running: .* for 60 s it is lost"):
        unfinished_runs(database, "nightly")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"ended_at": 1.0, "reason": "trials"}, r"nightly has come to its end \(trials\)"),
        ({"configuration": {}}, "run 9af0 cannot be resumed: trials=None is no whole number"),
        ({"configuration": BUDGET | {"seconds": "long"}}, "seconds='long' is no number"),
        ({"configuration": BUDGET | {"trials": 10**12, "patience": 0}}, "patience=0 is out of"),
        ({"seed": -1}, "seed=-1 is out of range"),
    ],
)
def test_what_cannot_be_resumed_is_said_in_a_sentence(database, change, says):
    run = replace(begun("9af0", 1000.0, 990.0), **change)
    database.begin_run(run)
    with pytest.raises(InputError, match=says):
        unfinished_runs(database, "nightly")


def test_a_session_that_nobody_knows(database):
    for name in ("nightly", "", "'; DROP TABLE runs", "\x1b"):
        with pytest.raises(InputError, match=r"there is no session .*; see tilewright list"):
            unfinished_runs(database, name)


def test_a_job_of_another_machine_is_not_resumed_here():
    with pytest.raises(InputError, match="was tuned on cpu Example CPU"):
        target_here(a_run())
    here = detect_target("cpu")
    assert target_here(replace(a_run(), target=here)) == here != TARGET


@pytest.mark.parametrize("ahead", [20.0, 3600.0, 1e9])
def test_a_heartbeat_in_the_future_is_no_sign_of_life(database, ahead):
    """Somebody's clock was ahead, and was set."""
    database.begin_run(begun("ahead", 100.0, -ahead, session="nightly"))
    (session,) = sessions(database)
    assert session.state(time.time()) is SessionState.LOST


@pytest.mark.parametrize("ahead", [-50.0, 0.0, 5.0])
def test_a_recent_heartbeat_is_a_sign_of_life_and_clocks_differ_a_little(database, ahead):
    database.begin_run(begun("alive", 100.0, -ahead, session="nightly"))
    (session,) = sessions(database)
    assert session.state(time.time()) is SessionState.RUNNING


def test_a_clock_that_stepped_back_takes_nothing_from_a_budget_and_adds_nothing(database):
    database.begin_run(begun("back", 100.0, 4000.0))
    (session,) = sessions(database)
    assert session.lasted == 0
    (rest,) = unfinished_runs(database, "nightly")
    assert rest.budget.seconds == BUDGET["seconds"]


@pytest.mark.parametrize("step", [-259_200.0, -100.0, 7200.0])
def test_a_run_lasts_as_long_as_it_did_however_the_clock_is_set(database, monkeypatch, step):
    """The system's clock steps; that of the process goes on."""
    clock = Clock()
    monkeypatch.setattr("tilewright.scheduler.tuning.runs.run_log.time", clock)
    monkeypatch.setattr("tilewright.measure.database.time", clock)
    space = hills()
    log = RunLog(database, space, new_run(space, Baseline(space.workload), "job", "", 0, BUDGET))
    log.begin()
    clock.sleep(11.0)
    log.beat()
    clock.set_forward(step)
    clock.sleep(11.0)
    log.beat()
    (session,) = sessions(database)
    assert session.lasted == pytest.approx(22.0)
    assert session.state(clock.time()) is SessionState.RUNNING
    clock.set_forward(-step)
    clock.sleep(8.0)
    log.end("interrupted")
    (rest,) = unfinished_runs(database, "job")
    assert rest.budget.seconds == pytest.approx(30.0)


class Clock:
    """Stands for :mod:`time`: the system's clock can be set, that of a process cannot."""

    def __init__(self) -> None:
        self._passed, self._set = 0.0, 1.7e9

    def monotonic(self) -> float:
        return self._passed

    def time(self) -> float:
        return self._set + self._passed

    def sleep(self, seconds: float) -> None:
        self._passed += seconds

    def set_forward(self, seconds: float) -> None:
        self._set += seconds


def test_a_run_whose_process_is_gone_is_lost_at_once(database):
    with subprocess.Popen(
        [sys.executable, "-c", NOTED], stdout=subprocess.PIPE, text=True
    ) as child:
        gone = child.communicate()[0]
    here = this_process()
    assert gone.count(":") == here.count(":") == 2
    for name, process in {
        "gone": gone,
        "here": here,
        "elsewhere": "0123456789abcdef:1:1",
        "strange": "a:b",
        "older": None,
    }.items():
        run = begun(name, 30.0, 1.0, session=name)
        database.begin_run(replace(run, versions={"process": process}))
    states = {session.name: session.state(time.time()) for session in sessions(database)}
    assert states == {
        "gone": SessionState.LOST,
        "here": SessionState.RUNNING,
        "elsewhere": SessionState.RUNNING,
        "strange": SessionState.RUNNING,
        "older": SessionState.RUNNING,
    }
    assert is_gone(here.rpartition(":")[0] + ":1")  # its number is another process's now
    (rest,) = unfinished_runs(database, "gone")
    assert rest.run.key == "gone"


NOTED = """
from tilewright.scheduler.tuning.runs.process import this_process
print(this_process(), end="")
"""
