"""Jobs that were cut short, listed and resumed: real processes, really killed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest

from tests.scheduler.cli.command import SMALL, ask, one_line, start
from tilewright.measure.database import Database
from tilewright.measure.records.run import CHECKED, Run, run_from_json
from tilewright.measure.testing.made_up import a_run
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.cli.known_clusters import remember
from tilewright.scheduler.tuning.task import UNTUNED
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

ENDLESS = ("--trials", "1000000", "--seconds", "3000", "--seed", "7", "--format", "json")
BLIND = ("--search", "random", "--numerics", "fast")


def cut_short(folder, number: signal.Signals) -> str:
    """The session of a job that was sent a signal after three trials."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("tune", *SMALL, *ENDLESS, *BLIND, cwd=folder, **pipes) as process:
        begun = json.loads(process.stdout.readline())
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=200)
    return begun["session"]


def allow(session: str, more: int) -> int:
    """As if the job of a session had been told to make so many more trials than it made; how many
    that is in all."""
    with Database("tuning.db") as database:
        made = sum(database.trials_of_run(run.key) for run in database.runs(session))
    with closing(sqlite3.connect("tuning.db")) as connection:
        change = "UPDATE runs SET configuration = json_set(configuration, '$.trials', ?)"
        connection.execute(change, (made + more,))
        connection.commit()
    return made + more


def age(folder, seconds: float) -> None:
    """As if all runs had been so many seconds earlier."""
    with closing(sqlite3.connect(folder / "tuning.db")) as connection:
        change = "UPDATE runs SET started_at = started_at - ?, heartbeat = heartbeat - ?"
        connection.execute(change, (seconds, seconds))
        connection.commit()


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),  # as test_tune_suite.py does
    ],
)
def test_a_job_that_was_cut_short_is_listed_and_resumed(here, capsys, number):
    session = cut_short(here, number)
    killed = number is signal.SIGKILL
    state = "lost, last heard of" if killed else "ended: interrupted"
    assert state in line_of(session, capsys)
    trials = allow(session, 4)
    text = ask(capsys, "resume", session, "--format", "json")
    assert json.loads(text.splitlines()[0])["session"] == session
    with Database("tuning.db") as database:
        first, second = database.runs(session)
        tried = [database.trials_of_run(run.key) for run in (first, second)]
        origins = {record.proposal.origin for record in database.records()}
    assert sum(tried) == first.configuration["trials"] == trials
    assert second.configuration["trials"] == 4
    assert second.configuration["seconds"] < 3000
    assert (first.seed, second.seed, second.reason) == (7, 7, "trials")
    assert second.configuration["numerics"] == first.configuration["numerics"] == "fast"
    assert "random" in origins
    assert origins <= {"random", "finalist", UNTUNED, CHECKED}
    assert "ended: trials" in line_of(session, capsys)
    (found,) = json.loads(ask(capsys, "list", "--sessions", "--format", "json"))
    assert (found["session"], found["state"], found["reasons"]) == (session, "ended", "trials")
    assert [run_from_json(each) for each in found["runs"]] == [second]
    assert run(("resume", session)) == 2
    assert "has come to its end (trials)" in one_line(capsys.readouterr().err)


def line_of(session: str, capsys) -> str:
    text = ask(capsys, "list", "--sessions")
    (line,) = (line for line in text.splitlines() if line.split()[:1] == [session])
    return line


def test_an_unknown_session(here, capsys):
    Database("tuning.db").close()
    assert run(("resume", "5f2c91ab")) == 2
    assert "there is no session '5f2c91ab'" in one_line(capsys.readouterr().err)


def test_times_that_are_none_are_listed_all_the_same(here, capsys):
    with Database("tuning.db") as database:
        database.begin_run(a_run(started_at=-1.7e308, heartbeat=1.7e308))
    assert " - " in line_of("nightly", capsys)


def lost_on(executor: object, address: object) -> None:
    """A database with the session of a driver that is lost, told to measure there."""
    told = {"trials": 4, "seconds": 100.0, "patience": None}
    run = Run(
        "9af0",
        workload("matmul m=64 n=64 k=64"),
        detect_target("cpu"),
        "nightly",
        configuration=told | {"executor": executor, "address": address},
    )
    with Database("tuning.db") as database:
        database.begin_run(run)


@pytest.mark.parametrize(
    ("executor", "address", "options", "says"),
    [
        (
            "ray",
            "10.0.0.1:6379",
            (),
            "you have never named the cluster at '10.0.0.1:6379'",
        ),
        ("ray", "10.0.0.1:6379", ("--executor", "local", "--insecure-cluster"), "is for a cluster"),
        ("local", None, ("--address", "10.0.0.1:6379"), "--address is for a cluster"),
        ("slurm", None, (), "executor='slurm' at None is none; allowed: local, ray"),
        ("ray", ["a"], (), "executor='ray' at ['a'] is none"),
        (["ray"], None, (), "executor=['ray'] at None is none"),
    ],
)
def test_where_a_session_cannot_go_on(here, capsys, executor, address, options, says):
    lost_on(executor, address)
    assert run(("resume", "nightly", *options)) == 2
    assert says in one_line(capsys.readouterr().err)


def test_a_session_whose_cluster_is_gone_says_what_to_pass_and_goes_on_by_that(here, capsys):
    pytest.importorskip("ray", reason="needs the extra ray")
    lost_on("ray", "127.0.0.1:1")
    remember("127.0.0.1:1")
    assert run(("resume", "nightly")) == 2
    said = one_line(capsys.readouterr().err)
    assert "no Ray cluster answers at 127.0.0.1:1: " in said
    assert "session nightly ran there; allowed instead: --address HOST:PORT of a cluster" in said
    assert "ray 127.0.0.1:1" in line_of("nightly", capsys)
    ask(capsys, "resume", "nightly", "--executor", "local")
    with Database("tuning.db") as database:
        assert list(database.runs("nightly"))[-1].configuration["executor"] == "local"
    assert "ended: trials" in line_of("nightly", capsys)
