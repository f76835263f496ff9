"""The database on a real PostgreSQL server, which these tests start from its own binaries."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, Table, create_engine, make_url, text

import measure
from measure.database import Database
from measure.queries import rankings
from measure.schema import HEAD, VERSION_TABLE, metadata
from spaces.errors import InputError
from tests.contracts.database import TARGET, WORKLOAD, DatabaseContract, attempt, measured
from tests.measure import postgresql

GOLDEN = Path(__file__).parent / "golden"
MIGRATIONS = Path(measure.__file__).parent / "migrations"


@pytest.fixture(scope="module")
def server():
    binaries = postgresql.binaries()
    if binaries is None:
        reason = "no PostgreSQL server here: neither on the path nor where Debian has it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with postgresql.server(binaries) as running:
        yield running


@pytest.fixture
def location(server):
    return server.new_database()


class TestPostgresql(DatabaseContract):
    @pytest.fixture
    def location(self, server):
        return server.new_database()


def test_migrations_make_the_tables_of_the_schema(location):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    Database(location).close()
    with create_engine(location).connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, metadata) == []


def name_of(location: str) -> str:
    return str(make_url(location).database)


def make_old(location: str) -> list[int]:
    """The golden database of schema 0001, here; the ids of its measurements."""
    with sqlite3.connect(":memory:") as golden, create_engine(location).begin() as connection:
        golden.executescript((GOLDEN / "schema_0001.sql").read_text())
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for name in ("workloads", "targets", "measurements"):
            table = Table(name, MetaData(), autoload_with=connection)
            rows = golden.execute(f"SELECT * FROM {name} ORDER BY id")
            columns = [column[0] for column in rows.description]
            rows = [dict(zip(columns, row, strict=True)) for row in rows]
            connection.execute(table.insert(), rows)
        return [row["id"] for row in rows]


def test_a_database_of_schema_0001_is_migrated(location):
    before = make_old(location)
    with Database(location) as database:
        records = list(database.records())
        assert [record.id for record in records] == before
        assert database.record(attempt(measured(1, 1.0)))
        *_, newest = database.records()
        assert newest.id > before[-1]
        assert {s.lost > 0 for s in database.summaries()} == {True, False}


def test_best_known_is_one_indexed_query(location):
    with Database(location) as database:
        database.record_all([attempt(measured(i, 1.0 + i, at=i)) for i in range(2000)])
        statement = rankings(WORKLOAD, TARGET)[0].limit(1).compile(dialect=database._engine.dialect)
        with database._transaction(writes=True) as connection:
            connection.execute(text("ANALYZE"))
        with database._transaction() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN {statement}", dict(statement.params))
            steps = [row[0] for row in plan]
    assert any("Index Scan using best_known" in step for step in steps), steps
    assert "Seq Scan on measurements " not in "\n".join(steps).replace("measurements final", "")


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
    location = f"postgresql://somebody:secret@/x?host={tmp_path}"
    with pytest.raises(InputError, match="cannot be used") as refused:
        Database(location)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_role_that_may_only_read_can_read(server, location):
    with Database(location) as database:
        database.record(attempt(measured(1, 1.0)))
    name = name_of(location)
    role = f"reader_of_{name}"
    server.execute(
        f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}", name
    )
    with Database(location.replace(postgresql.USER, role), create=False) as database:
        assert database.best(WORKLOAD, TARGET).measurement.score == 1.0
        assert len(list(database.records())) == len(database.summaries()) == 1
        with pytest.raises(InputError, match="permission denied"):
            database.record(attempt(measured(2, 1.0)))


def test_without_a_driver_the_package_is_named():
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from measure.database import Database\n"
        "Database('postgresql://host/x')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'tilewright[postgres]'" in ended.stderr.splitlines()[-1]
