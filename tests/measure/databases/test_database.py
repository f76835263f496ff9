"""The database in a SQLite file."""

import re
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from tests import databases
from tilewright.measure.database import Database
from tilewright.measure.tables.best_known import ranking_queries
from tilewright.measure.tables.engine import transaction
from tilewright.measure.tables.schema import HEAD, metadata
from tilewright.measure.testing.database import DatabaseContract
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    a_run,
    attempt,
    failed,
    measured,
)
from tilewright.spaces.operators import workload


class TestSqlite(DatabaseContract):
    @pytest.fixture
    def location(self, tmp_path):
        return str(databases.empty(tmp_path))

    @pytest.fixture
    def new_location(self, tmp_path):
        return str(tmp_path / "new.db")


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
        sibling = replace(TARGET, cores=TARGET.cores + 1)
        assert list(database.of_siblings(WORKLOAD, sibling, ["contraction.1"]))
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
    with Database(path) as database, transaction(database._writer) as connection:
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


def test_a_new_database_has_the_tables_that_migrations_make(path, tmp_path):
    other = f"sqlite:///{tmp_path / 'migrated.db'}"
    databases.migrated(other)
    assert databases.tables(f"sqlite:///{path}") == databases.tables(other)


def test_migrations_make_the_tables_of_the_schema(tmp_path):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    url = f"sqlite:///{tmp_path / 'migrated.db'}"
    databases.migrated(url)
    with create_engine(url).connect() as connection:
        options = {"version_table": "tilewright_schema"}
        context = MigrationContext.configure(connection, opts=options)
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, metadata) == []


def test_the_schema_is_valid_for_postgresql():
    for table in metadata.sorted_tables:
        assert "BIGSERIAL" in str(CreateTable(table).compile(dialect=postgresql.dialect()))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=postgresql.dialect()))


@pytest.mark.parametrize("name", ["tuning.db", "new.db"])
def test_migrations_are_loaded_only_when_needed(path, name):
    program = (
        "import sys; from tilewright.measure.database import Database; "
        "Database(sys.argv[1]).close(); "
        "sys.exit(any(name.startswith('alembic') for name in sys.modules))"
    )
    command = [sys.executable, "-c", program, str(path.with_name(name))]
    assert subprocess.run(command, check=False).returncode == 0


# -- databases of earlier versions ---------------------------------------------------------
