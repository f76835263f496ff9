"""Databases of earlier versions, from their committed text."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, Table, create_engine, text

import tilewright.measure

GOLDEN = Path(__file__).parent / "golden"
MIGRATIONS = Path(tilewright.measure.__file__).parent / "tables" / "migrations"
VERSIONS = sorted(path.name[1:5] for path in (MIGRATIONS / "versions").glob("r0*.py"))
TABLES = ("workloads", "targets", "pairs", "runs", "measurements")  # 0001 has three of them
MALFORMED = {"0004": 1}  # measurements that are passed over
COUNT_ON = "SELECT setval(pg_get_serial_sequence(:table, 'id'), :last)"


def make_sqlite(path: Path, version: str) -> None:
    """The database of a schema as a file."""
    with sqlite3.connect(path) as connection:
        connection.executescript((GOLDEN / f"schema_{version}.sql").read_text())


def make_postgresql(location: str, version: str) -> list[int]:
    """The same in an empty database of a server; the ids of its measurements."""
    with sqlite3.connect(":memory:") as golden, create_engine(location).begin() as connection:
        golden.executescript((GOLDEN / f"schema_{version}.sql").read_text())
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        made = {name for (name,) in golden.execute("SELECT name FROM sqlite_master")}
        for name in filter(made.__contains__, TABLES):
            table = Table(name, MetaData(), autoload_with=connection)
            rows = golden.execute(f"SELECT * FROM {name} ORDER BY id")
            columns = [column[0] for column in rows.description]
            rows = [dict(zip(columns, row, strict=True)) for row in rows]
            if rows:
                connection.execute(table.insert(), rows)
                last = {"table": name, "last": rows[-1]["id"]}
                connection.execute(text(COUNT_ON), last)
        return [row["id"] for row in rows]
