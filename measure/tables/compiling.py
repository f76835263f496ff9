"""Writes ``lookup_statements.py``, the statements that ``lookup.py`` asks an SQLite file.

    python -m tilewright.measure.tables.compiling

SQLAlchemy makes their text of the queries that a database of any kind is asked. A test compares the
file with what this module writes.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

from tilewright.measure.records.measurement import Status
from tilewright.measure.tables.best_known import KEYS_ASKED, ranking_queries
from tilewright.measure.tables.opening import SQLITE_PROGRAMS
from tilewright.measure.tables.queries import TRIALS
from tilewright.measure.tables.schema import (
    HEAD,
    VERSION_TABLE,
    measurements,
    pairs,
    targets,
    workloads,
)

FILE = Path(__file__).with_name("lookup_statements.py")
_HEADER = '''\
"""The statements of a look-up, made by ``measure.tables.compiling``. ``{versions}`` stands for the
parameters of the versions of templates."""

'''


def text() -> str:
    """Return the text of the module."""
    in_full, passed_over = ranking_queries(of_versions=True)
    statements = {
        "SCHEMA": f"SELECT version_num FROM {VERSION_TABLE}",
        "PROGRAMS": SQLITE_PROGRAMS,
        "TRIALS": _compiled(TRIALS),
        "VERSIONS": _compiled(_versions()),
        "IN_FULL": _compiled(in_full),
        "PASSED_OVER": _compiled(passed_over),
    }
    lines = [f"HEAD = {HEAD!r}".replace("'", '"')]
    lines += [f'{name} = """\\\n{_wrapped(each)}\n"""' for name, each in statements.items()]
    return _HEADER + "\n".join(lines) + "\n"


def _versions() -> ClauseElement:
    """Query the number of attempts with each version of a template, without lost ones."""
    version = measurements.c.template_version
    return (
        select(version, func.count())
        .join(pairs, measurements.c.pair_id == pairs.c.id)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(*KEYS_ASKED, measurements.c.status != str(Status.LOST))
        .group_by(version)
    )


def _compiled(query: ClauseElement) -> str:
    """Return a query as SQLite reads it, with its constants in their places."""
    compiled = query.compile(dialect=sqlite.dialect(paramstyle="named"))
    found = re.sub(r"\(__\[POSTCOMPILE_versions(?:_\d+)?\]\)", "({versions})", str(compiled))
    for name, value in compiled.params.items():
        if value is not None:
            found = re.sub(rf":{name}\b", lambda _, value=value: _literal(value), found)  # type: ignore[misc]
    return found


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _wrapped(statement: str) -> str:
    words = " ".join(statement.split())
    return textwrap.fill(words, 96, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    FILE.write_text(text())
