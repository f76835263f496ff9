"""Report the size of a database, and return its unused room to the file system."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, select, text

from tilewright.measure.tables.engine import name
from tilewright.measure.tables.schema import HEAD, measurements, pairs, runs, targets, workloads
from tilewright.spaces.errors import InputError

_TABLES = (workloads, targets, pairs, runs, measurements)


@dataclass(frozen=True)
class Stats:
    """The size of a database: rows of each table, failed and lost attempts among the measurements,
    bytes on disk, and the revision of its tables.
    """

    schema: str
    workloads: int
    targets: int
    pairs: int
    runs: int
    measurements: int
    failures: int
    lost: int
    bytes: int


def stats(connection: Connection) -> Stats:
    """Return the figures of an open database."""
    rows = {t.name: connection.execute(select(func.count()).select_from(t)) for t in _TABLES}
    counts = {name: result.scalar_one() for name, result in rows.items()}
    totals = select(func.sum(pairs.c.failures), func.sum(pairs.c.lost))
    failures, lost = (float(total or 0) for total in connection.execute(totals).one())
    if not isfinite(failures + lost):
        raise InputError(f"the database counts {failures:g} failures and {lost:g} lost attempts")
    size = _size(connection)
    return Stats(HEAD, **counts, failures=int(failures), lost=int(lost), bytes=size)


def _size(connection: Connection) -> int:
    if connection.dialect.name == "postgresql":
        query = " + ".join(f"pg_total_relation_size('{table.name}')" for table in _TABLES)
        return int(connection.execute(text(f"SELECT {query}")).scalar_one())
    path = str(connection.engine.url.database)
    files = (Path(path), Path(f"{path}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def vacuum(engine: Engine) -> None:
    """Give back the room that nothing uses, and let the planner count anew what there is.

    Raises :class:`InputError` where that is not this role's to do.
    """
    connection = engine.raw_connection()
    raw: Any = connection.driver_connection
    connection.detach()  # used outside of transactions, it is not to serve again
    refused: list[str] = []
    try:
        if engine.dialect.name == "postgresql":
            raw.autocommit = True
            raw.add_notice_handler(lambda notice: refused.append(str(notice.message_primary)))
            raw.execute(f"VACUUM (ANALYZE) {', '.join(table.name for table in _TABLES)}")
        else:
            raw.execute("VACUUM")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    if refused:  # the server warns of it, and goes on
        raise InputError(f"database {name(engine)} cannot be vacuumed: {refused[0]}")
