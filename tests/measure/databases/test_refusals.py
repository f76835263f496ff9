"""Files that are no database or a damaged one, and rows that are malformed."""

import random
import re
import sqlite3
import threading

import pytest

from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    attempt,
    measured,
    schedule,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_database_that_another_makes_at_the_same_time_is_waited_for(path, begin):
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute(begin)
    release = threading.Timer(0.3, other.execute, ("COMMIT",))
    release.start()
    Database(path).close()
    release.join()
    other.close()


def test_a_foreign_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "foreign.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a tuning database"):
        Database(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", ["9999", "", " ", "000", "head", "x" * 70_000, b"\xff", 7])
def test_a_newer_database_is_refused_and_left_alone(path, version):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tilewright_schema SET version_num = ?", [version])
    with pytest.raises(InputError, match=r"has schema .*newer") as error:
        Database(path)
    assert len(str(error.value)) < 500
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM measurements").fetchone() == (2,)


@pytest.mark.parametrize("content", [b"not a database at all" * 99, b"SQLite format 3\0" * 99])
def test_a_file_that_is_no_database(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"notes\.txt cannot be used"):
        Database(path)
    assert path.read_bytes() == content


def test_a_database_cut_short(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(InputError, match="cannot be used"), Database(path) as database:
        list(database.records())


def test_a_damaged_database_is_said_in_a_sentence_wherever_it_shows(path, tmp_path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    said = []
    for seed in range(60):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(300):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if seed % 2:  # past what tells SQLite that this is a database
            damaged[:100] = whole[:100]
        copy = tmp_path / f"damaged{seed}.db"
        copy.write_bytes(damaged)
        try:
            with Database(copy, create=bool(seed % 3)) as database:
                list(database.records())
                list(database.runs())
                database.summaries()
                list(database.nearest(workload("matmul", m=1, n=2, k=3), TARGET))
                database.record(attempt(measured(seed, 1.0)))
        except InputError as error:
            said.append(str(error))
    assert len(said) > 30
    assert all(sentence.isprintable() for sentence in said)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (
            "CREATE TRIGGER t AFTER INSERT ON measurements BEGIN DELETE FROM measurements; END",
            "has a trigger 't'",
        ),
        ("CREATE VIEW v AS SELECT 1", "has a view 'v'"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "has a virtual table 'f'"),
    ],
)
def test_a_database_that_brings_programs_is_refused(path, program, says):
    with sqlite3.connect(path) as connection:
        connection.execute(program)
    for create in (True, False):
        with pytest.raises(InputError, match=says):
            Database(path, create)


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("missing/folder/x.db", "cannot be used: unable to open"),
        (".", "is no file; allowed: the path of a file"),
        ("none/", "is no file; allowed: the path of a file"),
        ("\udcff.db", "no database can be named .*, which is no text"),
        ("/dev/null", "is no file"),
        ("x" * 999, "cannot be used: File name too long"),
        ("://", "no database URL"),
        ("postgresql://user:secret@host:port/x", "^that is no database URL"),
        ("sqlite:///a%00b", "no file can be named"),
        ("postgresql+asyncpg://host/x", "no support for database 'postgresql.asyncpg'"),
        ("mysql://host/x", "no support for database 'mysql'"),
        ("sqlite://", "would be lost"),
        (":memory:", "would be lost"),
        (5, "5 is no database; allowed: a path or a URL"),
        (None, "None is no database"),
    ],
)
def test_locations_that_cannot_be(location, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        Database(location)
    assert not list(tmp_path.iterdir())


def test_a_relative_path_leads_nowhere_from_a_folder_that_is_gone(tmp_path, monkeypatch):
    (folder := tmp_path / "gone").mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(InputError, match="data is in a folder that is gone"):
        Database("data")


@pytest.mark.parametrize("location", [".", "/dev/null", "x" * 999])
def test_locations_of_no_file_are_said_to_who_reads_too(location):
    with pytest.raises(InputError, match=r"is no file; allowed|File name too long"):
        Database(location, create=False)


def test_nothing_is_made_where_that_was_not_asked_for(tmp_path):
    with pytest.raises(InputError, match="there is no database at"):
        Database(tmp_path / "missing.db", create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("schedule", '{"template": 1}', "not a schedule"),
        ("schedule", schedule(9).key, "keys are not those of its contents"),
        ("samples", "[1, null]", "samples="),
        ("samples", "__import__('os').abort()", "not JSON"),
        ("status", "great", "allowed: ok, slow, error, lost"),
        ("score", -2.0, "score=-2.0"),
        ("score", None, "needs a score"),
        ("error_kind", "bad luck", "error_kind='bad luck'"),
        ("info", "[]", "info="),
        ("info", b"\xff", "not JSON"),
        ("started_at", "yesterday", "started_at='yesterday'"),
    ],
)
def test_a_malformed_row_is_passed_over_and_told_of(path, column, value, says):
    with Database(path) as database:
        good = list(database.records())[1:]
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE measurements SET {column} = ? WHERE id = 1", (value,))
    told = []
    with Database(path, report=told.append) as database:
        assert list(database.records()) == good
        assert database.best(WORKLOAD, TARGET) in [None, *good]
        list(database.records())
    assert re.fullmatch(
        f"1 malformed row of .* passed over; the first: record 1: .*{says}.*", *told
    )


@pytest.mark.parametrize("sizes", ["[]", "1", '{"m":0}', '{"m":true}', '{"m":2.0}', '{"m":[]}'])
def test_malformed_extents_are_said_in_a_sentence(path, sizes):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE workloads SET extents = ?", (sizes,))
    with Database(path) as database, pytest.raises(InputError, match="are no extents"):
        list(database.nearest(workload("matmul", m=1, n=2, k=3), TARGET))


@pytest.mark.parametrize(
    ("table", "says"), [("workloads", "not a workload"), ("targets", "unknown kind of target")]
)
def test_a_malformed_description_is_told_of(path, table, says):
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET description = '{{}}'")
    told = []
    with Database(path, report=told.append) as database:
        assert database.pairs() == []
        assert database.best(WORKLOAD, TARGET).workload == WORKLOAD  # who asks knows what it is
    assert len(told) == 1
    assert says in told[0]


@pytest.mark.parametrize("column", ["trials", "failures", "lost"])
@pytest.mark.parametrize("count", [b"\xff\xfe", float("inf"), "9" * 400, 1.5])
def test_a_summary_with_a_count_that_is_none_is_told_of(path, column, count):
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE pairs SET {column} = ?", (count,))
    told = []
    with Database(path, report=told.append) as database:
        assert database.summaries() == []
    assert f"{column}=" in told[0]


@pytest.mark.parametrize("column", ["failures", "lost"])
def test_totals_of_counts_that_are_none_are_refused(path, column):
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE pairs SET {column} = 9e999")
    with Database(path) as database, pytest.raises(InputError, match="the database counts"):
        database.stats()
