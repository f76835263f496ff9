"""Databases that are locked, or whose servers start again or stay away, while a job runs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from signal import SIGINT, SIGQUIT
from typing import Any

import pytest

from tests import databases
from tests.measure import postgresql
from tests.scheduler.made_up_machine import MadeUpMachine
from tilewright.measure.database import Database
from tilewright.measure.tables import opening, retries
from tilewright.measure.tables.retries import LockedError, waiting
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.events import Progress
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.tuner import Tuner

SMALL = ("matmul", "m=64", "n=64", "k=64")


@pytest.fixture(scope="module")
def server(server_binaries: Path) -> Iterator[postgresql.Server]:
    """One that these tests may end."""
    with postgresql.server(server_binaries) as made:
        yield made


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(databases.empty(tmp_path)) as opened:
        yield opened


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process writes, as far as the file shows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_locked_file_ends_a_command_when_its_time_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = databases.empty(tmp_path)
    with locked(path):
        assert run(["tune", *SMALL, "--seconds", "1", "--db", str(path)]) == 2
    said = capsys.readouterr().err
    assert f"database {path} cannot be used: database is locked" in said


def test_a_file_that_is_locked_meanwhile_keeps_what_it_has(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "LOCKED_SECONDS", 0.5)
    space, machine = hills(), MadeUpMachine()
    with closing(sqlite3.connect(tmp_path / "tuning.db", isolation_level=None)) as other:

        def lock(progress: Progress) -> None:
            if progress.trials == 21:
                other.execute("BEGIN IMMEDIATE")

        tuner = tuning(database, machine)
        with pytest.raises(LockedError, match="database is locked"):
            tuner.run(trials=64, seconds=600, on_progress=lock)
        other.execute("ROLLBACK")
    assert 21 <= database.trials(space.workload, space.target) < 64


def test_a_file_that_is_unlocked_in_time_is_waited_for(tmp_path: Path) -> None:
    path = databases.empty(tmp_path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.7, other.execute, ("ROLLBACK",))
    release.start()
    with waiting(), Database(path) as database:
        assert database.stats().runs == 0
    release.join()
    other.close()


def test_nobody_waits_who_was_asked_to_end(tmp_path: Path) -> None:
    path, asked = databases.empty(tmp_path), []

    def hurry() -> bool:
        asked.append(True)
        return len(asked) > 2

    with locked(path), waiting(hurry=hurry), pytest.raises(LockedError):
        Database(path)
    assert len(asked) == 3


# -- servers -------------------------------------------------------------------------------


def tuning(database: Database, machine: MadeUpMachine) -> Tuner:
    space = hills()
    search = RandomSearch(space, seed=0)
    return Tuner(
        space.workload,
        space.target,
        database,
        machine,
        lambda _: search,
        spaces=[space],
        session="job",
    )


def kill(server: postgresql.Server) -> None:
    server.kill()


def stop_at_once(server: postgresql.Server) -> None:
    server.stop(SIGQUIT)


def stop_in_order(server: postgresql.Server) -> None:
    server.stop(SIGINT)


STEPS = {
    "preparing": (opening, "_prepare", kill),
    "begin_run": (Database, "begin_run", stop_at_once),
    "records": (Database, "records", stop_in_order),
    "record_all": (Database, "record_all", kill),
    "end_run": (Database, "end_run", stop_in_order),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_server_that_starts_again_is_waited_for_at_each_step(
    server: postgresql.Server, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    owner, name, end = STEPS[step]
    location = server.new_database()
    Database(location).close()
    starting = on_first_call(monkeypatch, owner, name, lambda: end(server), server.start)
    space = hills()
    with waiting(), Database(location) as database:
        result = tuning(database, MadeUpMachine()).run(trials=32, seconds=120)
        assert len(starting) == 1
        starting[0].join()
        assert result.stopped is Stop.TRIALS
        assert database.trials(space.workload, space.target) == 32
        [job] = database.runs()
        assert job.reason == "trials"


def on_first_call(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    end: Callable[[], None],
    start: Callable[[], None],
) -> list[threading.Timer]:
    """End the server when a function is first called, and start it a second later; the timer of
    its start, once it runs."""
    original, timers = getattr(owner, name), list[threading.Timer]()

    def ending(*args: Any, **options: Any) -> Any:
        if not timers:
            end()
            timers.append(threading.Timer(1.0, start))
            timers[0].start()
        return original(*args, **options)

    monkeypatch.setattr(owner, name, ending)
    return timers


def test_a_server_that_dies_while_it_writes_has_each_result_once(
    server: postgresql.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the answer to a commit is lost, nobody knows whether it was kept."""
    location = server.new_database()
    space = hills()
    with Database(location) as database:
        original, calls = database._engine.dialect.do_commit, []

        def committing(connection: Any) -> None:
            original(connection)
            calls.append(connection)
            if len(calls) == 4:
                server.kill()
                threading.Timer(0.5, server.start).start()
                connection.execute("SELECT 1")

        monkeypatch.setattr(database._engine.dialect, "do_commit", committing)
        tuning(database, MadeUpMachine()).run(trials=32, seconds=120)
        records = list(database.records(space.workload, space.target))
        assert len({record.id for record in records}) == len(records) >= 32


def test_a_server_that_stays_away_ends_a_job_with_a_code_and_how_to_go_on(
    server: postgresql.Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    location = server.new_database()
    Database(location).close()
    monkeypatch.setattr(retries, "OUTAGE_SECONDS", 0.5)
    original = Database.record_all

    killed = []

    def killing(database: Database, *args: Any) -> Any:
        if not killed:
            killed.append(server.kill())
        return original(database, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Database, "record_all", killing)
        code = run(["tune", *SMALL, "--trials", "2", "--seconds", "60", "--db", location])
    server.start()
    assert code == 3
    [last] = [line for line in capsys.readouterr().err.splitlines() if "resume" in line]
    assert "cannot be used: " in last
    session = last.rpartition(" ")[2]
    with Database(location) as database:
        [run_of_it] = database.runs(session)
        assert run_of_it.ended_at is None
