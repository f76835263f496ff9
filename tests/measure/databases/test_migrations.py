"""Databases of earlier schemas, which keep all they know."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.measure.earlier import MALFORMED, VERSIONS, make_sqlite
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Place
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    attempt,
    measured,
    schedule,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.validation.canonical import canonical_json

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def old(tmp_path):
    """A database of schema 0001: commit 2324fef tuned it, with a compiler that failed at times."""
    make_sqlite(tmp_path / "old.db", "0001")
    return tmp_path / "old.db"


def test_a_database_of_schema_0001_keeps_all_it_knows(old):
    with sqlite3.connect(old) as connection:
        query = "SELECT id, round, score, samples, error_text FROM measurements"
        before = connection.execute(query).fetchall()
    with Database(old) as database:
        records = list(database.records())
    after = [(r.id, r.measurement) for r in records]
    assert [
        (id, m.round, m.score, json.dumps(m.samples).replace(" ", ""), m.error_text)
        for id, m in after
    ] == [tuple(row) for row in before]
    assert {r.run for r in records} == {"", "monday"}
    assert {r.measurement.place for r in records} == {Place()}


def test_migration_gives_each_record_the_version_of_its_own_template(old):
    with Database(old) as database:
        records = list(database.records())
    assert {r.template_version.rpartition(".")[0] == r.schedule.template for r in records} == {True}
    cuda = {r.template_version for r in records if r.target.kind == "cuda"}
    assert cuda <= {"hopper.6", "mma.1", "simt.1"}
    assert len(cuda) > 1


def test_migration_makes_the_keys_of_today(old, tmp_path):
    with Database(old) as database:
        assert database.import_jsonl(GOLDEN / "measurements_v1.jsonl") == 0
        assert database.export_jsonl(tmp_path / "all.jsonl") == len(list(database.records()))
        assert database.import_jsonl(tmp_path / "all.jsonl") == 0
        assert database.record(attempt(measured(1, 1.0)))
        with sqlite3.connect(old) as connection:
            keys = [
                key for (key,) in connection.execute("SELECT key FROM measurements ORDER BY id")
            ]
        assert keys == [record.key for record in database.records()]


def test_migration_asks_again_what_the_machine_may_have_failed(old):
    with Database(old) as database:
        failures = [r.measurement for r in database.records() if r.measurement.error_kind]
        summaries = database.summaries()
    lost = {(str(m.error_kind), m.error_text) for m in failures if m.lost}
    kept = {(str(m.error_kind), m.error_text) for m in failures if not m.lost}
    assert ("compile_error", "No space left on device") in lost
    assert ("compile_error", "unit.c:3:1: error: expected ';' before 'return'") in kept
    assert {kind for kind, _ in lost} == {
        *("compile_error", "compile_timeout", "timeout", "device_error", "crash", "wrong_result"),
        "out_of_memory",
    }
    assert {kind for kind, _ in kept} == {
        *("compile_error", "crash", "out_of_bounds", "wrong_result"),
    }
    assert sum(summary.lost for summary in summaries) == sum(m.lost for m in failures)
    assert sum(summary.failures for summary in summaries) == sum(not m.lost for m in failures)


def test_a_malformed_row_of_an_earlier_version_is_said_in_a_sentence(old):
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE measurements SET schedule = '[]' WHERE id = 3")
    with pytest.raises(InputError, match="schema 0001 has a malformed row"):
        Database(old)
    with sqlite3.connect(old) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
    assert "runs" not in tables


def test_a_database_of_schema_0002_keeps_its_runs_and_records(tmp_path):
    make_sqlite(tmp_path / "old.db", "0002")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        query = "SELECT key, seed, budget, reason FROM runs"
        before = connection.execute(query).fetchall()
        ids = [id for (id,) in connection.execute("SELECT id FROM measurements ORDER BY id")]
    with Database(tmp_path / "old.db") as database:
        after = [
            (r.key, r.seed, canonical_json(r.configuration), r.reason) for r in database.runs()
        ]
        records = list(database.records())
        best = database.best(WORKLOAD, TARGET)
    assert after == before
    assert [record.id for record in records] == ids
    assert (best.schedule, best.doubted) == (schedule(4), False)
    assert sum(record.doubted for record in records) == 2


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_a_committed_database_of_each_earlier_schema_is_opened_whole(tmp_path, version):
    """Commits 5c987e3, b0777ba and 72e58c5 made those of 0003, 0005 and 0006 from the exports
    beside them, commit 9bbf783 that of 0007 with ``names_v3.jsonl``."""
    make_sqlite(tmp_path / "old.db", version)
    with sqlite3.connect(tmp_path / "old.db") as connection:
        [(before,)] = connection.execute("SELECT count(*) FROM measurements")
        [(stamp,)] = connection.execute("SELECT version_num FROM tilewright_schema")
    assert stamp == version
    with Database(tmp_path / "old.db") as database:
        assert len(list(database.records())) == before - MALFORMED.get(version, 0)
        assert database.record(attempt(measured(77, 1.0)))
        assert database.best(WORKLOAD, TARGET) is not None


@pytest.mark.parametrize(
    ("spellings", "extents", "best"),
    [
        (("y[m] = -(a[m] + b[m]) * c[m]", "y[m] = -((a[m] + b[m]) * c[m])"), {"m": 8}, 21),
        (("max(x, max(bias[n], 0.5))", "max(max(x, bias[n]), 0.5)"), {}, 31),
        (
            ("w[r] * x[2 * (i + r)]", "x[2 * r + 2 * i] * w[r]"),
            {"i": 8, "r": 4},
            23,
        ),
    ],
)
def test_migration_knows_programs_of_one_form_as_one(tmp_path, spellings, extents, best):
    make_sqlite(tmp_path / "old.db", "0006")
    with Database(tmp_path / "old.db") as database:
        for text in spellings:
            match extents:
                case {"r": _}:
                    work = workload(f"x: float32[40]; y[i] = sum[r]({text})", **extents)
                case {"m": _}:
                    work = workload(text, **extents)
                case _:
                    work = workload("matmul", m=64, n=96, k=128, epilogue=text)
            assert database.best(work, TARGET).schedule == schedule(best)
            assert database.trials(work, TARGET) == (1 if best == 31 else 2)


def test_migration_keeps_what_people_are_told_of_workloads(old):
    with Database(old) as database:
        told = [(s.workload, s.flops, s.target) for s in database.summaries()]
        pairs = database.pairs()
    assert told == [(str(work), work.flops, target) for work, target in pairs]
    assert len(told) > 3


def test_migration_passes_over_a_malformed_workload(tmp_path):
    make_sqlite(tmp_path / "old.db", "0002")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute("UPDATE workloads SET description = '[]' WHERE id = 1")
    told = []
    with Database(tmp_path / "old.db", report=told.append) as database:
        left = len(database.summaries())
        assert left == len(database.pairs()) > 0
    assert len(told) == 1
    assert "malformed" in told[0]


def test_the_nearest_of_a_migrated_database(old):
    with Database(old) as database:
        target = next(database.records()).target
        found = list(database.nearest(workload("matmul", m=24, n=24, k=32), target))
    assert [record.workload.extents["m"] for record in found] == [24]


def test_best_of_a_migrated_database(old):
    with Database(old) as database:
        best = {s.workload: s.score for s in database.summaries()}
    small = str(workload("matmul", m=24, n=24, k=24))
    half = str(workload("matmul", m=512, n=512, k=512, dtype="float16"))
    assert best[small] == 5.02670529e-07
    assert best[half] == 1e-5


# -- foreign and damaged databases ---------------------------------------------------------
