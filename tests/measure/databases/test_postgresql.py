"""The database on a real PostgreSQL server, which these tests start from its own binaries."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from tests import databases
from tests.measure.earlier import MALFORMED, VERSIONS, make_postgresql
from tilewright.measure.database import Database
from tilewright.measure.tables.best_known import ranking_queries
from tilewright.measure.tables.engine import transaction
from tilewright.measure.testing.database import DatabaseContract
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    a_run,
    attempt,
    lost,
    measured,
)
from tilewright.scheduler.best import best
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.tuning.runs.run_log import RunLog
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

ROOT = Path(__file__).parents[3]
RUNS = {
    "0001": 0,
    "0002": 3,
    "0003": 1,
    "0004": 5,
    "0005": 1,
    "0006": 1,
    "0007": 0,
}  # of the committed databases


@pytest.fixture
def location(server):
    return server.new_database()


class TestPostgresql(DatabaseContract):
    @pytest.fixture
    def location(self, server):
        return server.empty_tables()

    @pytest.fixture
    def new_location(self, server):
        return server.new_database()


def test_a_new_database_has_the_tables_that_migrations_make(server):
    made, migrated = server.new_database(), server.new_database()
    Database(made).close()
    databases.migrated(migrated)
    assert databases.tables(made) == databases.tables(migrated)


def name_of(location: str) -> str:
    return str(make_url(location).database)


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_a_database_of_an_earlier_schema_is_migrated(location, version):
    before = make_postgresql(location, version)
    with Database(location) as database:
        records = list(database.records())
        assert {record.id for record in records} <= set(before)
        assert len(records) == len(before) - MALFORMED.get(version, 0)
        assert database.record(attempt(measured(1, 1.0)))
        *_, newest = database.records()
        assert newest.id > before[-1]
        assert len(list(database.runs())) == RUNS[version]
        if version in ("0001", "0002"):
            assert {s.lost > 0 for s in database.summaries()} == {True, False}


def test_best_known_is_one_indexed_query(location):
    with Database(location) as database:
        database.record_all([attempt(measured(i, 1.0 + i, at=i)) for i in range(2000)])
        keys = {"workload": WORKLOAD.key, "target": TARGET.fingerprint}
        asked = ranking_queries()[0].params(**keys, limit=1, offset=0)
        statement = asked.compile(dialect=database._engine.dialect)
        with transaction(database._writer) as connection:
            connection.execute(text("ANALYZE"))
        with transaction(database._engine) as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN {statement}", dict(statement.params))
            steps = [row[0] for row in plan]
    assert any("Index Scan using best_known" in step for step in steps), steps
    assert "Seq Scan on measurements " not in "\n".join(steps).replace("measurements final", "")


def test_a_database_that_is_open_is_used_on_when_its_server_starts_again(server, location):
    with Database(location) as database:
        database.record(attempt(measured(1, 1.0)))
        server.stop(signal.SIGINT)
        server.start()
        assert database.best(WORKLOAD, TARGET).measurement.score == 1.0
        server.stop(signal.SIGINT)
        server.start()
        assert database.record(attempt(measured(2, 2.0)))
        assert database.trials(WORKLOAD, TARGET) == 2


def waiting_for_locks(location: str, count: int) -> bool:
    """Whether in the end so many users of the database wait for each other."""
    asked = text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        with create_engine(location).connect() as connection:
            if connection.execute(asked).scalar_one() == count:
                return True
        time.sleep(0.02)
    return False


def test_a_job_and_a_copy_of_it_that_is_merged_wait_one_for_the_other_and_never_both(location):
    """Each has something of one run and of one pair."""
    with Database(location) as database, ThreadPoolExecutor(2) as threads:
        database.begin_run(a_run())
        with create_engine(location).begin() as holding:
            holding.execute(text("SELECT id FROM pairs FOR UPDATE"))
            more = replace(attempt(measured(1, 1.0)), run="9af0")
            recording = threads.submit(database.record, more)
            assert waiting_for_locks(location, 1)
            copy = [a_run(heartbeat=9.0), attempt(measured(2, 2.0))]
            merging = threads.submit(database.add, copy)
            assert waiting_for_locks(location, 2)
        assert (recording.result(), merging.result()) == (True, 1)
        assert database.trials(WORKLOAD, TARGET) == 2


def test_another_encoding_is_refused_in_a_sentence(server):
    for encoding in ("SQL_ASCII", "LATIN1"):
        location = server.new_database(encoding)
        with pytest.raises(InputError, match=f"has encoding {encoding}; allowed: UTF8"):
            Database(location)


@pytest.mark.parametrize(
    "program",
    [
        "CREATE RULE r AS ON INSERT TO measurements DO INSTEAD NOTHING",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        "CREATE TRIGGER t BEFORE INSERT ON measurements FOR EACH ROW EXECUTE FUNCTION f()",
        "ALTER TABLE runs RENAME TO real; CREATE VIEW runs AS SELECT * FROM real",
    ],
)
def test_a_database_that_brings_programs_is_refused(server, location, program):
    Database(location).close()
    server.execute(program, name_of(location))
    with pytest.raises(InputError, match=r"trigger, rule or view on '(measurements|runs)'"):
        Database(location)


def test_a_foreign_database_is_refused(server, location):
    server.execute("CREATE TABLE recipes (name TEXT)", name_of(location))
    with pytest.raises(InputError, match="not a tuning database"):
        Database(location)


def test_a_server_that_is_not_there_is_said_without_the_password(tmp_path):
    for location in (
        f"postgresql://somebody:secret@/x?host={tmp_path}",
        f"postgresql://somebody@/x?host={tmp_path}&password=secret",
    ):
        with pytest.raises(InputError, match=r"cannot be used: connection .* failed: ") as refused:
            Database(location)
        assert "secret" not in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_server_that_refuses_says_why_without_the_password(server, location):
    name = name_of(location)
    server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", name)  # as since version 15
    server.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'; CREATE ROLE crowded LOGIN")
    server.execute("CREATE ROLE barred; ALTER ROLE crowded CONNECTION LIMIT 0")
    server.ask_for_password("guarded")
    for user, database, says in (
        ("guarded:secret", name, 'password authentication failed for user "guarded"'),
        ("guarded", name, "password"),
        ("crowded", name, 'too many connections for role "crowded"'),
        ("barred", name, 'role "barred" is not permitted to log in'),
        ("nobody", name, 'role "nobody" does not exist'),
        ("guarded:right", "missing", 'database "missing" does not exist'),
        ("guarded:right", name, "permission denied for schema public"),
    ):
        with pytest.raises(InputError, match=re.escape(says)) as refused:
            Database(server.url(database, user))
        assert not re.search(r"secret|right|\n", str(refused.value))


# -- roles ---------------------------------------------------------------------------------


@pytest.fixture
def roles(server, location):
    """URLs of a database for who may read and who may append, by the statements of the guide."""
    Database(location).close()
    (statements,) = re.findall(
        "```sql\n(.*?)```", (ROOT / "docs/how-to/share-a-database.md").read_text(), re.DOTALL
    )
    name = name_of(location)
    for role in ("readers", "jobs"):
        statements = re.sub(rf"\b{role}\b", f"{role}_of_{name}", statements)
    server.execute(statements, name)
    for user, role in (("reader", "readers"), ("job", "jobs")):
        server.execute(f"CREATE ROLE {user}_of_{name} LOGIN IN ROLE {role}_of_{name}")
    return tuple(server.url(name, f"{user}_of_{name}") for user in ("reader", "job"))


def test_a_role_that_may_only_append_suffices_for_a_job(roles, location):
    _, job = roles
    with Database(job) as database:
        database.begin_run(a_run())
        database.begin_run(a_run(heartbeat=9.0))
        record = replace(attempt(measured(1, 1.0)), run="9af0")
        assert database.record_all([record, attempt(measured(2, 2.0)), attempt(lost(3))]) == 3
        database.beat("9af0")
        database.set_start("9af0", 3.0)
        database.doubt(record)
        database.end_run("9af0", "trials")
        assert database.trials(WORKLOAD, TARGET) == 2
    with Database(location) as database:
        assert [record.doubted for record in database.records()] == [True, False, False]
        assert [run.reason for run in database.runs()] == ["trials"]


def test_a_role_that_may_only_read_suffices_for_all_that_is_asked(roles, location, tmp_path):
    reader, _ = roles
    near = workload("matmul", m=64, n=96, k=64, epilogue="relu(x + bias[n])")
    with Database(location) as database:
        database.begin_run(a_run())
        database.record_all([attempt(measured(1, 1.0)), attempt(measured(2, 2.0), near)])
    with Database(reader, create=False) as database:
        assert database.best(WORKLOAD, TARGET).measurement.score == 1.0
        assert [record.workload for record in database.nearest(WORKLOAD, TARGET)] == [near]
        assert len(list(database.records())) == len(database.summaries()) == 2
        assert (database.trials(near, TARGET), len(list(database.runs()))) == (1, 1)
        assert database.export_jsonl(tmp_path / "all.jsonl") == 2
        assert database.stats().measurements == 2


def test_neither_may_make_tables_whatever_a_server_allows_at_first(roles):
    for location in roles:
        with create_engine(location).connect() as connection:
            asked = text("SELECT has_schema_privilege('public', 'CREATE')")
            assert connection.execute(asked).scalar_one() is False


@pytest.mark.parametrize(
    "change",
    [
        lambda database: database.record(attempt(measured(2, 1.0))),
        lambda database: database.doubt(attempt(measured(1, 1.0))),
        lambda database: database.begin_run(a_run()),
        lambda database: database.vacuum(),
    ],
)
def test_a_role_that_may_only_read_can_change_nothing(roles, location, change):
    reader, _ = roles
    with Database(location) as database:
        database.record(attempt(measured(1, 1.0)))
    with Database(reader, create=False) as database:
        with pytest.raises(InputError, match=r"permission denied|owner can vacuum"):
            change(database)
        (record,) = database.records()
    assert not record.doubted


def test_who_may_only_read_is_told_before_anything_is_measured(server, roles, location):
    reader, _ = roles
    with pytest.raises(InputError, match=r"can only be read by reader_of_.*, who may not INSERT"):
        Database(reader)
    name = name_of(location)
    server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on", name)
    with pytest.raises(InputError, match="can only be read: its server is read-only"):
        Database(location)


def test_a_database_without_tables_is_no_foreign_one(location):
    with pytest.raises(InputError, match="is empty: nothing was recorded in it yet"):
        Database(location, create=False)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM measurements",
        "UPDATE measurements SET score = 1e-9",
        "UPDATE runs SET command = ''",
        "UPDATE workloads SET description = '{}'",
        "INSERT INTO tilewright_schema VALUES ('9999')",
        "TRUNCATE pairs CASCADE",
        "DROP TABLE runs",
    ],
)
def test_a_role_that_may_only_append_can_change_nothing_that_is_there(roles, statement):
    import psycopg

    refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with psycopg.connect(roles[1].replace("+psycopg", "")) as connection, refused:
        connection.execute(statement)


def test_roles_suffice_for_the_commands(roles, tmp_path, monkeypatch, capsys):
    reader, job = roles
    monkeypatch.chdir(tmp_path)
    shape = ("matmul", "m=24", "n=20", "k=16")
    assert run(("tune", *shape, "--trials", "10", "--seconds", "1000", "-q", "--db", job)) == 0
    for words in (
        ("query", *shape),
        ("list",),
        ("export", "all.jsonl"),
        ("train", "--out", "model.json"),
        ("db", "stats"),
    ):
        assert run((*words, "--db", reader)) == 0, capsys.readouterr().err
    assert best(" ".join(shape), "cpu", reader).provenance == "measured"
    assert run(("import", "all.jsonl", "--db", job)) == 0
    assert run(("db", "merge", reader, "--into", "copy.db")) == 0


def test_a_job_runs_with_the_rights_that_earlier_versions_asked_for(roles, server, location):
    """They did not include the time at which a run began, which changes where a clock was set."""
    name = name_of(location)
    server.execute(f"REVOKE UPDATE (started_at) ON runs FROM jobs_of_{name}", name)
    with Database(roles[1]) as database, pytest.MonkeyPatch.context() as patch:
        began = replace(a_run(), key="9af1")
        log = RunLog(database, space_for(began.workload, began.target), began)
        log.begin()
        patch.setattr(time, "time", lambda now=time.time: now() + 100)
        log.end("trials")
    with Database(location) as database:
        (kept,) = database.runs()
    assert (kept.reason, kept.started_at) == ("trials", began.started_at)


def test_without_a_driver_the_package_is_named():
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from tilewright.measure.database import Database\n"
        "Database('postgresql://host/x')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'tilewright[postgres]'" in ended.stderr.splitlines()[-1]
