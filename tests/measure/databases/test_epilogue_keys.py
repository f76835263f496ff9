"""Databases in which one product was several rows, one for each spelling of its epilogue."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import replace

import pytest
from sqlalchemy import create_engine, text

from tests.measure.earlier import make_postgresql, make_sqlite
from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import TARGET, attempt, measured, schedule
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload
from tilewright.spaces.validation.canonical import canonical_json
from tilewright.spaces.workloads.workload import Workload

THREADS = replace(TARGET, threads=2)


def fused(epilogue: str):
    return workload("matmul", m=64, n=96, k=128, epilogue=epilogue)


FIRST = fused("x + bias[n] + residual[m,n]")
SPELLINGS = [FIRST, fused("residual[m,n] + (x + bias[n])"), fused("r[m,n] + x + b[n]")]


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request, tmp_path):
    """Of schema 0004: 16 attempts, 11 of them of three spellings; the first attempt was kept in two
    of these, doubted in the second. Commit 02983f6 wrote it."""
    if request.param == "sqlite":
        make_sqlite(tmp_path / "old.db", "0004")
        return f"sqlite:///{tmp_path / 'old.db'}"
    location = request.getfixturevalue("server").new_database()
    make_postgresql(location, "0004")
    return location


def rows(location: str, query: str) -> list[tuple]:
    with create_engine(location).begin() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def change(location: str, statement: str) -> None:
    with create_engine(location).begin() as connection:
        connection.execute(text(statement))


def test_one_product_in_several_spellings_becomes_one_row(old):
    with Database(old) as database:
        found = [
            (s.workload, s.target.threads, s.trials, s.failures, s.lost, s.score)
            for s in database.summaries()
            if s.workload == str(FIRST)
        ]
        assert found == [(str(FIRST), 1, 6, 1, 1, 0.001), (str(FIRST), 2, 2, 1, 0, 0.002)]
        for spelling in SPELLINGS:
            assert database.trials(spelling, TARGET) == 6
            assert database.best(spelling, TARGET).schedule == schedule(4)
            assert database.best(spelling, THREADS).schedule == schedule(1)
            assert database.best(spelling, TARGET).workload == spelling
        assert {(r.key, r.workload, r.target.threads) for r in database.runs()} == {
            *((key, FIRST, 1) for key in ("r1", "r2", "r4")),
            ("r3", FIRST, 2),
            ("r5", fused(""), 1),
        }
        assert {key: database.trials_of_run(key) for key in ("r1", "r2", "r3")} == {
            **{"r1": 4, "r2": 2, "r3": 2},
        }


def test_what_is_another_product_stays_one(old):
    with Database(old) as database:
        others = [fused("gelu(b[n] + x)"), fused("x + b[m] + r[m,n]"), fused("")]
        assert [database.best(other, TARGET).measurement.score for other in others] == [
            *(0.006, 0.0005, 0.002)
        ]
        assert len(database.pairs()) == 6


def test_no_attempt_is_lost_and_each_has_its_key_of_today(old):
    own = "id, schedule, status, score, samples, started_at, recorded_at, run"
    before = rows(old, f"SELECT {own} FROM measurements ORDER BY id")
    with Database(old) as database:
        records = list(database.records())
    after = rows(old, f"SELECT {own} FROM measurements ORDER BY id")
    again = [row for row in before if row not in after]
    assert len(before) - len(after) == len(again) == 1
    assert (again[0][3], again[0][5]) == (0.004, 1.8e9)  # the attempt that was there twice
    keys = [key for (key,) in rows(old, "SELECT key FROM measurements ORDER BY id")]
    assert keys == [record.key for record in records]
    assert [record.doubted for record in records] == [True] + [False] * 14


def test_what_is_measured_and_imported_later_joins_it(old, tmp_path):
    with Database(old) as database:
        assert database.export_jsonl(tmp_path / "all.jsonl") == 15
        assert database.import_jsonl(tmp_path / "all.jsonl") == 0
        for i, spelling in enumerate(SPELLINGS):
            assert database.record(attempt(measured(8 + i, 0.1, at=1.9e9), spelling))
        assert not database.record(attempt(measured(8, 0.1, at=1.9e9), SPELLINGS[2]))
        assert database.trials(FIRST, TARGET) == 9


def test_malformed_rows_stay_as_they_are(old):
    change(old, "UPDATE workloads SET description = '[]' WHERE id = 2")
    change(old, "UPDATE workloads SET key = 'another' WHERE id = 5")
    left = "SELECT id, key, description FROM workloads WHERE id IN (2, 5) ORDER BY id"
    before, told = rows(old, left), []
    with Database(old, report=told.append) as database:
        assert len(list(database.records())) == 8
        assert database.trials(FIRST, TARGET) == 5
    assert rows(old, left) == before
    assert rows(old, "SELECT count(*) FROM measurements") == [(15,)]
    assert "malformed rows" in told[0]


def test_a_migrated_database_is_left_as_it_is(old):
    everything = [f"SELECT * FROM {table} ORDER BY id" for table in ("workloads", "measurements")]
    Database(old).close()
    before = [rows(old, query) for query in everything]
    change(old, "UPDATE tilewright_schema SET version_num = '0004'")
    with Database(old) as database:
        assert database.trials(FIRST, TARGET) == 6
    assert [rows(old, query) for query in everything] == before


def test_many_attempts_are_given_their_keys_in_pieces(tmp_path):
    make_sqlite(tmp_path / "old.db", "0004")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(measurements)")]
        others = ", ".join(c for c in columns if c not in ("id", "key", "started_at"))
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) "
            f"INSERT INTO measurements (key, started_at, {others}) "
            f"SELECT 'more' || i, started_at + i, {others} FROM measurements, n WHERE id = 1"
        )
        connection.execute("UPDATE measurements SET started_at = 'never' WHERE key = 'more7'")
    Database(tmp_path / "old.db").close()
    with sqlite3.connect(tmp_path / "old.db") as connection:
        found = connection.execute(
            "SELECT key, template_version, schedule, round, started_at FROM measurements "
            "WHERE pair_id = 1 ORDER BY id"
        ).fetchall()
    expected = [
        hashlib.sha256(canonical_json((FIRST.key, TARGET.fingerprint, *row)).encode()).hexdigest()
        for _, *row in found
    ]
    wrong = [key for (key, *_), own in zip(found, expected, strict=True) if key != own]
    assert (len(found), wrong) == (2508, ["more7"])


SELECTING = "y[m, n] = select(sum[k](a[m, k] * b[k, n]) > 0, log(sum[k](a[m, k] * b[k, n])), 0)"


def as_a_program(text: str) -> Workload:
    """What a product was whose epilogue was not known as one."""
    made = program(text, m=4, n=5, k=6)
    return Workload("program", (("text", text), ("m", 4), ("n", 5), ("k", 6)), made, "")


def test_programs_become_the_products_that_they_are(tmp_path):
    location = f"sqlite:///{tmp_path / 'old.db'}"
    other = as_a_program("y[m, n] = sum[k](a[m, k] * b[k, n] * c[k])")
    with Database(location) as database:
        for number, work in enumerate((as_a_program(SELECTING), as_a_program(SELECTING), other)):
            assert database.record(attempt(measured(number, 0.5 - 0.1 * number, at=1.7e9), work))
    change(location, "UPDATE tilewright_schema SET version_num = '0005'")
    before = rows(location, "SELECT id, key, text FROM workloads ORDER BY id")
    assert [key.split()[0] for _, key, _ in before] == ["program", "program"]
    product = workload("matmul", m=4, n=5, k=6, epilogue="select(x > 0, log(x), 0)")
    with Database(location) as database:
        assert database.trials(product, TARGET) == 2
        assert database.best(product, TARGET).measurement.score == 0.4
        assert database.trials(other, TARGET) == 1
        assert database.best(workload(SELECTING, m=4, n=5, k=6), TARGET).schedule == schedule(1)
        keys = [record.key for record in database.records()]
    assert rows(location, "SELECT key FROM measurements ORDER BY id") == [(key,) for key in keys]
    after = rows(location, "SELECT id, key, text FROM workloads ORDER BY id")
    assert after[0] == (1, product.key, str(product))
    assert after[1] == before[1]
