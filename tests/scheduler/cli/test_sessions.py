"""Jobs that were cut short, listed and resumed: real processes, really killed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest

from measure.database import Database
from scheduler.cli.app import run
from tests.scheduler.cli.command import SMALL, ask, one_line, start

BUDGET = ("--trials", "10", "--seconds", "100", "--seed", "7", "--format", "json")


def cut_short(folder, number: signal.Signals) -> str:
    """The session of a job that was sent a signal after three of its ten trials."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("tune", *SMALL, *BUDGET, cwd=folder, **pipes) as process:
        begun = json.loads(process.stdout.readline())
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=60)
    return begun["session"]


def age(folder, seconds: float) -> None:
    """As if all runs had been so many seconds earlier."""
    with closing(sqlite3.connect(folder / "tuning.db")) as connection:
        change = "UPDATE runs SET started_at = started_at - ?, heartbeat = heartbeat - ?"
        connection.execute(change, (seconds, seconds))
        connection.commit()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_job_that_was_cut_short_is_listed_and_resumed(here, capsys, number):
    session = cut_short(here, number)
    killed = number is signal.SIGKILL
    if killed:
        assert "running" in line_of(session, capsys)
        assert run(("resume", session)) == 2
        assert f"session {session} is running" in one_line(capsys.readouterr().err)
        age(here, 100)
    state = "lost, last heard of 1:4" if killed else "ended: interrupted"
    assert state in line_of(session, capsys)
    text = ask(capsys, "resume", session, "--format", "json")
    assert json.loads(text.splitlines()[0])["session"] == session
    with Database("tuning.db") as database:
        first, second = database.runs(session)
        tried = [database.trials_of_run(run.key) for run in (first, second)]
    assert sum(tried) == first.configuration["trials"] == 10
    assert second.configuration["trials"] == 10 - tried[0]
    assert second.configuration["seconds"] < 100
    assert (first.seed, second.seed, second.reason) == (7, 7, "trials")
    assert "ended: trials" in line_of(session, capsys)
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
