"""Look-ups without SQLAlchemy: they answer as a database does, or leave it to one."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given

from tests import databases
from tilewright.measure.database import Database
from tilewright.measure.records.record import Record
from tilewright.measure.tables import compiling
from tilewright.measure.tables.lookup import UnansweredError, lookup
from tilewright.measure.testing.made_up import (
    FEW,
    TARGET,
    VERSION,
    WORKLOAD,
    attempt,
    histories,
    lost,
    measured,
    shape_of,
)


def test_the_statements_are_those_of_today() -> None:
    assert compiling.FILE.read_text() == compiling.text()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A database for all examples, each of which has a target of its own."""
    return databases.empty(tmp_path_factory.mktemp("shared"))


@FEW
@given(history=histories)
def test_a_look_up_answers_as_a_database(shared, history) -> None:
    with Database(shared) as database:
        target = replace(TARGET, threads=len(database.summaries()) + 1)
        database.record_all(
            [
                replace(
                    attempt(replace(m, started_at=float(i)), target=target),
                    doubted=doubted,
                    template_version=f"contraction.{i % 3}",
                )
                for i, (m, doubted) in enumerate(history)
            ]
        )
        known = database.versions(WORKLOAD, target).get(target.fingerprint, {})
        with lookup(shared, WORKLOAD, target) as found:
            assert found.trials() == database.trials(WORKLOAD, target)
            assert found.versions() == known
            for versions in (known, ["contraction.1"], ["other.1"], []):
                for count in (1, 2, 99):
                    expected = database.best_few(WORKLOAD, target, count, versions)
                    again = found.best_few(count, versions)
                    assert again == expected
                    assert [record.id for record in again] == [record.id for record in expected]


def test_a_look_up_of_what_is_unknown_finds_nothing(path) -> None:
    with lookup(path, shape_of(77), TARGET) as found:
        assert (found.trials(), found.versions()) == (0, {})
        assert found.best_few(8, [VERSION]) == []


def test_what_the_machine_lost_has_no_version(tmp_path) -> None:
    location = databases.empty(tmp_path)
    with Database(location) as database:
        database.record(attempt(lost(1)))
        database.record(Record(WORKLOAD, TARGET, "thin.1", measured(2, 1.0)))
    with lookup(location, WORKLOAD, TARGET) as found:
        assert found.versions() == {"thin.1": 1}


def ask(path) -> None:
    with lookup(path, WORKLOAD, TARGET) as found:
        found.best_few(8, [VERSION])


@pytest.mark.parametrize("name", ["missing.db", "a\0b.db", "folder/", "\ud800.db", "", ":memory:"])
def test_a_file_that_is_not_there_is_left_to_a_database(tmp_path, monkeypatch, name) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnansweredError):
        ask(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 99])
def test_a_file_that_is_no_database_is_left_to_one(tmp_path, content) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UnansweredError):
        ask(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tilewright_schema SET version_num = '0007'",
        "DELETE FROM tilewright_schema",
        "CREATE VIEW mine AS SELECT 1",
        "UPDATE measurements SET schedule = '{'",
        "UPDATE measurements SET samples = '[\"x\"]'",
        "UPDATE measurements SET schedule_digest = 'x' WHERE status = 'ok'",
        "UPDATE measurements SET error_text = CAST(x'ff' AS TEXT)",
    ],
)
def test_whatever_is_amiss_is_left_to_a_database(path, statement) -> None:
    ask(path)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    with pytest.raises(UnansweredError):
        ask(path)


def test_a_path_may_have_signs_that_an_address_gives_a_meaning(path) -> None:
    odd = path.rename(path.with_name("50%3f ?mode=memory#x.db"))
    with lookup(odd, WORKLOAD, TARGET) as found:
        assert found.trials() == 2
