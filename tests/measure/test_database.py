import gzip
import json
import random
import re
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from measure.database import Database
from measure.records.jsonl import read_lines
from measure.records.measurement import Place
from measure.records.record import Record
from measure.tables.best_known import ranking_queries
from measure.tables.schema import HEAD, metadata
from measure.testing.database import DatabaseContract
from measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    a_run,
    attempt,
    failed,
    measured,
    schedule,
)
from spaces.errors import InputError
from spaces.operators import workload
from spaces.validation.canonical import canonical_json
from tests import databases
from tests.measure.earlier import make_sqlite

GOLDEN = Path(__file__).parent / "golden"


class TestSqlite(DatabaseContract):
    @pytest.fixture
    def location(self, tmp_path):
        return str(databases.empty(tmp_path))

    @pytest.fixture
    def new_location(self, tmp_path):
        return str(tmp_path / "new.db")


@pytest.fixture
def path(tmp_path):
    """A database of two records."""
    location = databases.empty(tmp_path)
    with Database(location) as database:
        database.record_all([attempt(measured(1, 1.0)), attempt(failed(2))])
    return location


def test_best_known_is_one_indexed_query(path):
    keys = {"workload": WORKLOAD.key, "target": TARGET.fingerprint}
    asked = ranking_queries()[0].params(**keys, limit=1, offset=0)
    compiled = asked.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    with sqlite3.connect(path) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {compiled}")]
    assert any("measurements USING INDEX best_known" in step for step in plan), plan
    assert not any(step.startswith("SCAN") for step in plan), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


def test_no_question_and_no_record_reads_every_row(path):
    """Each statement finds its rows by an index; one that does not takes ever longer."""
    asked = []
    near = workload("matmul", m=64, n=96, k=64)
    with Database(path) as database:
        database.record_all([attempt(measured(i, 1.0), near) for i in range(3)])
        event.listen(database._engine, "before_cursor_execute", lambda *a: asked.append(a[2:4]))
        database.begin_run(a_run())
        mixed = [attempt(measured(9, 1.0)), attempt(failed(8), near), attempt(measured(1, 1.0))]
        assert database.record_all([replace(r, run="9af0") for r in mixed]) == 2
        assert database.best_few(WORKLOAD, TARGET, 3, ["contraction.1"])
        assert list(database.nearest(WORKLOAD, TARGET))
        assert database.trials(WORKLOAD, TARGET) == 3
        assert database.trials_of_run("9af0") == 2
        database.doubt(mixed[0])
    assert len(asked) > 20
    with sqlite3.connect(path) as connection:
        for statement, values in asked:
            if statement.split()[0] not in ("SELECT", "UPDATE"):
                continue
            one = values[0] if isinstance(values, list) else values
            steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", one)]
            scans = [step for step in steps if re.match(r"SCAN (?!anon_)", step)]
            assert not scans, (statement, steps)


def test_commits_reach_the_disk(path):
    with Database(path) as database, database._transaction(writes=True) as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas["journal_mode"] == "wal"
    assert pragmas["synchronous"] == 2  # FULL
    assert pragmas["foreign_keys"] == 1
    assert pragmas["busy_timeout"] >= 10_000


def test_vacuum_gives_room_back(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE filler AS SELECT randomblob(1000000) AS x")
        connection.execute("DROP TABLE filler")
    with Database(path) as database:
        assert database.stats().bytes > 1_000_000
        database.vacuum()
        assert database.stats().bytes < 500_000


def test_a_url_is_a_location_too(path):
    with Database(f"sqlite:///{path}") as database:
        assert database.trials(WORKLOAD, TARGET) == 2


def test_a_relative_path_is_of_the_folder_in_which_it_is_opened(tmp_path, monkeypatch):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with Database("tuning.db") as database:
            assert database.record(attempt(measured(1, 1.0)))


def test_a_file_that_was_put_in_the_place_of_an_open_database_is_opened(path, tmp_path):
    with Database(path) as before:
        assert before.trials(WORKLOAD, TARGET) == 2
        (tmp_path / "other").mkdir()
        databases.empty(tmp_path / "other").replace(path)
        with Database(path) as database:
            assert database.trials(WORKLOAD, TARGET) == 0


def test_migrations_make_the_tables_of_the_schema(path):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with create_engine(f"sqlite:///{path}").connect() as connection:
        options = {"version_table": "tilewright_schema"}
        context = MigrationContext.configure(connection, opts=options)
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, metadata) == []


def test_the_schema_is_valid_for_postgresql():
    for table in metadata.sorted_tables:
        assert "BIGSERIAL" in str(CreateTable(table).compile(dialect=postgresql.dialect()))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=postgresql.dialect()))


def test_migrations_are_loaded_only_when_needed(path):
    program = (
        "import sys; from measure.database import Database; Database(sys.argv[1]).close(); "
        "sys.exit(any(name.startswith('alembic') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == 0


# -- databases of earlier versions ---------------------------------------------------------


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
        (".", "cannot be used: unable to open"),
        ("://", "no database URL"),
        ("postgresql://user:secret@host:port/x", "^that is no database URL"),
        ("sqlite:///a%00b", "no file can be named"),
        ("postgresql+asyncpg://host/x", "no support for database 'postgresql.asyncpg'"),
        ("mysql://host/x", "no support for database 'mysql'"),
        ("sqlite://", "would be lost"),
        (":memory:", "would be lost"),
    ],
)
def test_locations_that_cannot_be(location, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        Database(location)


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


# -- the format of exports -----------------------------------------------------------------


def test_exports_of_version_1_are_read_for_ever(tmp_path):
    with Database(tmp_path / "new.db") as database:
        assert database.import_jsonl(GOLDEN / "measurements_v1.jsonl") == 3
        assert database.best(WORKLOAD, TARGET).measurement.score == 0.00125
        records = list(database.records())
    assert [record.template_version for record in records] == ["contraction.1"] * 3
    assert [record.run for record in records] == ["monday", "monday", ""]
    assert all(record.proposal is None and not record.doubted for record in records)


@pytest.mark.parametrize("version", [2, 3])
def test_exports_of_later_versions_are_read_for_ever(tmp_path, version):
    with Database(tmp_path / "new.db") as database:
        assert database.import_jsonl(GOLDEN / f"measurements_v{version}.jsonl") == 5
        (run,) = database.runs()
        assert run.configuration == {"trials": 128, "seconds": 60.0, "patience": None}
        database.export_jsonl(tmp_path / "again.jsonl")
    golden = (GOLDEN / "measurements_v3.jsonl").read_text()
    assert (tmp_path / "again.jsonl").read_text() == golden


def test_a_last_line_torn_anywhere_is_left_out(tmp_path):
    whole = (GOLDEN / "measurements_v3.jsonl").read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    good = [line for _, line in read_lines(GOLDEN / "measurements_v3.jsonl", pytest.fail)]
    path = tmp_path / "torn.jsonl"
    for end in range(last, len(whole) + 1):
        path.write_bytes(whole[:end])
        said = []
        found = [line for _, line in read_lines(path, said.append)]
        torn = last < end < len(whole) - 1
        assert found == (good if end >= len(whole) - 1 else good[:-1])
        assert said == ([f"line 7 of {path} is torn and was left out"] if torn else [])


def test_compressed_files_are_read_as_what_they_hold(tmp_path):
    plain = GOLDEN / "measurements_v3.jsonl"
    packed = tmp_path / "measurements.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_lines(packed, pytest.fail)) == list(read_lines(plain, pytest.fail))


@pytest.mark.parametrize("harm", [lambda data: data[:-9], lambda data: data[:40] + b"?" * 40])
def test_compressed_files_that_are_not_whole_are_refused(tmp_path, harm):
    packed = tmp_path / "measurements.jsonl.gz"
    whole = gzip.compress((GOLDEN / "measurements_v3.jsonl").read_bytes())
    packed.write_bytes(harm(whole))
    with pytest.raises(InputError, match=f"{packed} is no whole file of gzip: "):
        list(read_lines(packed, pytest.fail))


def test_the_keys_of_exports_of_every_version():
    """Of an epilogue's what it computes counts since schema 0005; plain products keep theirs."""
    keys = ["37fc6391b31562fe", "712a66765b3af182", "986ff57f26b7b6b5"]
    for version in (1, 2, 3):
        lines = read_lines(GOLDEN / f"measurements_v{version}.jsonl", pytest.fail)
        found = [line.key[:16] for _, line in lines if isinstance(line, Record)]
        assert found[:3] == keys
