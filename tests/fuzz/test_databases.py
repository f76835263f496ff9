"""Databases that a disk, a stray program or a stranger changed."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.fuzz.commands import PROGRAM, SEGMENTS, WORDS, command, rightly
from tests.fuzz.damage import HOSTILE, spoiled_bytes, spoiled_json

ALL = pytest.param(300, marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id="all")
SCHEMA = (
    "CREATE TRIGGER t AFTER INSERT ON measurements BEGIN DELETE FROM measurements; END",
    "CREATE VIEW v AS SELECT * FROM measurements",
    "DROP TABLE {table}",
    "ALTER TABLE {table} RENAME TO other",
    "ALTER TABLE {table} DROP COLUMN {column}",
    "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "DELETE FROM {table}",
    "DELETE FROM tilewright_schema",
    "UPDATE tilewright_schema SET version_num = '9999'",
    "CREATE TABLE other (x)",
    "PRAGMA user_version = 77",
    "PRAGMA application_id = 77",
)


def spoil(rng: random.Random, path: Path) -> None:
    """Change the file as bytes, or as the database that it is."""
    if rng.random() < 0.5:
        data = path.read_bytes()
        for _ in range(rng.choice([1, 1, 1, 5])):
            data = spoiled_bytes(rng, data)
        path.write_bytes(data)
        return
    with closing(sqlite3.connect(path)) as connection:
        for _ in range(rng.choice([1, 1, 3])):
            with suppress(sqlite3.Error, OverflowError, UnicodeEncodeError, IndexError):
                _change(rng, connection)
        connection.commit()


def _change(rng: random.Random, connection: sqlite3.Connection) -> None:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    table = rng.choice([name for (name,) in connection.execute(query)])
    column = rng.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
    if rng.random() < 0.3:
        connection.execute(rng.choice(SCHEMA).format(table=table, column=column))
        return
    rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    rowid, value = rng.choice(rows)
    where = "" if rng.random() < 0.3 else f"WHERE rowid = {rowid}"
    connection.execute(f"UPDATE {table} SET {column} = ? {where}", [_other(rng, value)])


def _other(rng: random.Random, value: object) -> object:
    if isinstance(value, str) and value[:1] in ("{", "[") and rng.random() < 0.7:
        import json

        return json.dumps(spoiled_json(rng, json.loads(value)))
    other = rng.choice([*HOSTILE, b"\xff\xfe", -5, 1e-30, "2096-01-01"])
    return other if isinstance(other, int | float | str | bytes | None) else str(other)


@pytest.mark.parametrize("count", [8, ALL])
def test_a_damaged_database_harms_nobody(ground, place, survive, count):
    def act(number):
        def run():
            rng = random.Random(f"database {number}")
            folder = place / f"{number}"
            folder.mkdir()
            os.chdir(folder)
            shutil.copy(ground.database, "x.db")
            spoil(rng, Path("x.db"))
            command("list", "--db", "x.db")
            command("query", *rng.choice((WORDS, PROGRAM, SEGMENTS)), "--db", "x.db")
            command("export", "x.jsonl", "--db", "x.db")
            command("import", str(ground.export), "--db", "x.db")
            command("list", "--sessions", "--db", "x.db")
            command("db", "stats", "--db", "x.db")
            command("db", "merge", "x.db", "--into", "y.db")
            command("db", "vacuum", "--db", "x.db")
            if rng.random() < 0.4:
                command("train", "--db", "x.db", "--out", "x.json")
            if rng.random() < 0.1:
                command("tune", *WORDS, "--trials", "2", "--seconds", "3", "--db", "x.db", "-q")
            rightly("x.db")
            os.chdir(place)
            shutil.rmtree(folder)

        return run

    survive(act, count)
