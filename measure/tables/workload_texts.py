"""A quick look at the workloads of an SQLite database, for the completion of command lines.

It takes milliseconds, since it loads none of the libraries that read a database, and trusts nothing
that it finds: callers get text.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

MOST = 1000  # workloads that are looked at
PATIENCE = 0.1  # seconds to wait for a lock

_QUERY = "SELECT text FROM workloads WHERE text LIKE ? ESCAPE '\\' ORDER BY id DESC LIMIT ?"


def texts_of(path: Path, operator: str) -> list[str]:
    """Return the texts of the latest workloads of an operator; none where they cannot be read at
    once."""
    if not path.is_file():
        return []
    pattern = operator.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%") + " %"
    try:
        where = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(where, uri=True, timeout=PATIENCE)) as connection:
            rows = connection.execute(_QUERY, (pattern, MOST)).fetchall()
    except (sqlite3.Error, ValueError):
        return []
    return [text for (text,) in rows if isinstance(text, str) and text.isprintable()]
