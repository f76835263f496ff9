"""Databases with our tables and nothing in them: copies, for making the tables takes longer."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, inspect

from tilewright.measure.database import Database
from tilewright.measure.tables.opening import upgrade


def empty(folder: Path) -> Path:
    """A new file in ``folder``."""
    path = folder / "tuning.db"
    path.write_bytes(_content())
    return path


@cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        Database(path).close()
        return path.read_bytes()


def migrated(url: str) -> None:
    """Fill an empty database with the tables that the revisions make, one after the other."""
    engine = create_engine(url)
    with engine.begin() as connection:
        upgrade(engine, connection, None)
    engine.dispose()


def tables(url: str) -> dict[str, Any]:
    """Read what a database says of each table: columns, keys, indexes, and its schema's number."""
    engine = create_engine(url)
    with engine.connect() as connection:
        asked = inspect(connection)
        found = {table: _table(asked, table) for table in asked.get_table_names()}
        query = "SELECT version_num FROM tilewright_schema"
        found["number"] = connection.exec_driver_sql(query).scalar()
    engine.dispose()
    return found


def _table(asked: Any, table: str) -> dict[str, Any]:
    indexes = [i for i in asked.get_indexes(table) if "duplicates_constraint" not in i]
    wheres = [str(i["dialect_options"].get(f"{asked.dialect.name}_where")) for i in indexes]
    return {
        "columns": {c["name"]: (str(c["type"]), c["nullable"]) for c in asked.get_columns(table)},
        "key": asked.get_pk_constraint(table)["constrained_columns"],
        "unique": {tuple(u["column_names"]) for u in asked.get_unique_constraints(table)},
        "foreign": {
            (*f["constrained_columns"], f["referred_table"]) for f in asked.get_foreign_keys(table)
        },
        "indexes": {
            (i["name"], *i["column_names"], where) for i, where in zip(indexes, wheres, strict=True)
        },
    }
