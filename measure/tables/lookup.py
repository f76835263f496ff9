"""Look up measured schedules in an SQLite file without SQLAlchemy, which takes longer to load than
all else that a query does.

The statements are those that SQLAlchemy makes (``measure.tables.compiling``). A look-up answers for
a file at this version's schema alone. Whatever else it meets, it leaves to
:class:`measure.database.Database`, which migrates, waits and says what is wrong.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tilewright.measure.records.record import Record
from tilewright.measure.tables import lookup_statements
from tilewright.measure.tables.file import check_file
from tilewright.measure.tables.merging import first_schedules, in_pieces, merged
from tilewright.measure.tables.rows import own_from_row
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

SECONDS = 1.0
"""Seconds that a look-up waits for a locked file."""


class UnansweredError(Exception):
    """A look-up that a :class:`measure.database.Database` has to answer."""


class Lookup:
    """The records that a file has of one workload on one target."""

    def __init__(self, connection: sqlite3.Connection, workload: Workload, target: Target) -> None:
        self._connection = connection
        self._workload = workload
        self._target = target
        self._keys = {"workload": workload.key, "target": target.fingerprint}

    def trials(self) -> int:
        """See :meth:`measure.database.Database.trials`."""
        rows = self._fetched(lookup_statements.TRIALS, self._keys)
        return rows[0][0] if rows else 0

    def versions(self) -> dict[str, int]:
        """Count the attempts with each version of a template, see
        :meth:`measure.database.Database.versions`."""
        rows = self._fetched(lookup_statements.VERSIONS, self._keys)
        return {row[0]: row[1] for row in rows}

    def best_few(self, count: int, versions: Collection[str]) -> list[Record]:
        """See :meth:`measure.database.Database.best_few`."""
        named = {f"version{i}": version for i, version in enumerate(versions)}
        places = ", ".join(f":{name}" for name in named)

        def records(statement: str) -> Iterator[Record]:
            text = statement.format(versions=places)

            def fetch(limit: int, offset: int) -> Sequence[sqlite3.Row]:
                return self._fetched(
                    text, {**self._keys, **named, "limit": limit, "offset": offset}
                )

            return map(self._record, in_pieces(fetch, count))

        both = (lookup_statements.IN_FULL, lookup_statements.PASSED_OVER)
        return first_schedules(merged(*map(records, both)), count)

    def _record(self, row: sqlite3.Row) -> Record:
        columns = {**row, "doubted": bool(row["doubted"])}  # SQLite keeps truth as a number
        return own_from_row(columns, self._workload, self._target)

    def _fetched(self, statement: str, values: Mapping[str, Any]) -> list[sqlite3.Row]:
        return self._connection.execute(statement, values).fetchall()


@contextmanager
def lookup(path: str | Path, workload: Workload, target: Target) -> Iterator[Lookup]:
    """Open a file for one look-up. Raises :class:`UnansweredError`, within the block too, where the
    file is missing, locked, foreign or of another schema, and for a malformed row."""
    try:
        check_file(str(path), path, create=False)
        with closing(_connection(str(path))) as connection:
            _check(connection)
            yield Lookup(connection, workload, target)
    except (sqlite3.Error, InputError, UnicodeError) as error:
        raise UnansweredError from error


def _connection(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(path)}?mode=rw"  # never makes a file
    connection = sqlite3.connect(uri, SECONDS, isolation_level=None, uri=True)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("BEGIN")
    return connection


def _check(connection: sqlite3.Connection) -> None:
    """Refuse a file of another schema, and one that brings code of its own."""
    version = connection.execute(lookup_statements.SCHEMA).fetchone()
    programs = connection.execute(lookup_statements.PROGRAMS).fetchone()
    if version is None or version[0] != lookup_statements.HEAD or programs is not None:
        raise UnansweredError
