"""Gives schedules new texts, for a migration: another spelling of the same schedule.

Measurements get the digests and keys that they would get today."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.tables.migrations.rekeying import measurement_key
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.canonical import canonical_json

_PAGE = 1000


def rewrite_schedules(connection: sa.Connection, present: Callable[[object], object]) -> None:
    """Replace the JSON of each schedule by what ``present`` makes of it. Malformed rows, and those
    whose digest is not their schedule's, stay as they are."""
    for page in _pages(connection):
        texts = {row.id: _rewritten(row, present) for row in page}
        changed = [row for row in page if texts[row.id] not in ("", row.schedule)]
        new = [columns for row in changed if (columns := _columns(row, texts[row.id]))]
        if new:
            connection.execute(_REWRITE, new)


def _pages(connection: sa.Connection) -> Iterator[Sequence[sa.Row[Any]]]:
    """Yield all measurements in the order of their rows, with what their keys are made of."""
    last = 0
    while rows := connection.execute(_SCHEDULES, {"last": last, "page": _PAGE}).all():
        yield rows
        last = rows[-1].id


_SCHEDULES = sa.text(
    "SELECT m.id, m.schedule, m.schedule_digest, m.template_version, m.round, m.started_at, "
    "w.key AS workload, t.fingerprint FROM measurements m JOIN pairs p ON p.id = m.pair_id "
    "JOIN workloads w ON w.id = p.workload_id JOIN targets t ON t.id = p.target_id "
    "WHERE m.id > :last ORDER BY m.id LIMIT :page"
)
_REWRITE = sa.text(
    "UPDATE measurements SET key = :key, schedule = :schedule, schedule_digest = :digest "
    "WHERE id = :id"
)


def _rewritten(row: sa.Row[Any], present: Callable[[object], object]) -> str:
    """Return the new text of a row's schedule; empty if the row is malformed."""
    if not isinstance(row.schedule, str) or _digest(row.schedule) != row.schedule_digest:
        return ""
    try:
        return canonical_json(present(parse_json(row.schedule)))
    except (InputError, TypeError):
        return ""


def _columns(row: sa.Row[Any], schedule: str) -> dict[str, object]:
    """Return the new values of a row's columns; none if another column is malformed."""
    key = measurement_key(row.workload, row.fingerprint, row, schedule)
    if not key:
        return {}
    return {"id": row.id, "key": key, "schedule": schedule, "digest": _digest(schedule)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
