"""Puts records into the tables, each attempt once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from measure.schema import measurements, targets, workloads
from spaces.canonical import canonical_json
from spaces.target import Target
from spaces.workload import Workload

_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def insert(connection: Connection, rows: Sequence[tuple[Workload, Target, dict[str, Any]]]) -> int:
    """Insert rows of ``measure.rows.to_row`` with what they are of; how many were new."""
    workload_ids = {w.key: _workload_id(connection, w) for w in {w for w, _, _ in rows}}
    target_ids = {t: _target_id(connection, t) for t in {t for _, t, _ in rows}}
    return _insert_new(
        connection,
        measurements.c.key,
        [
            row | {"workload_id": workload_ids[workload.key], "target_id": target_ids[target]}
            for workload, target, row in rows
        ],
    )


def _workload_id(connection: Connection, workload: Workload) -> int:
    description = canonical_json(workload.to_json())
    row = {"key": workload.key, "operator": workload.operator, "description": description}
    return _id(connection, workloads.c.key, row)


def _target_id(connection: Connection, target: Target) -> int:
    description = canonical_json(target.to_json())
    row = {"fingerprint": target.fingerprint, "description": description}
    return _id(connection, targets.c.fingerprint, row)


def _id(connection: Connection, key: Column[str], row: dict[str, Any]) -> int:
    """The id of the row with that ``key``, which is inserted if there is none."""
    query = select(key.table.c.id).where(key == row[key.name])
    known = connection.execute(query).scalar()
    if known is None:
        _insert_new(connection, key, [row])
        known = connection.execute(query).scalar_one()
    return int(known)


def _insert_new(connection: Connection, key: Column[str], rows: list[dict[str, Any]]) -> int:
    """Insert rows unless one with the same ``key`` exists; how many were inserted."""
    statement = _INSERTS[connection.dialect.name](key.table)
    statement = statement.on_conflict_do_nothing(index_elements=[key]).inline()
    result = connection.execute(statement, rows, execution_options={"preserve_rowcount": True})
    return int(result.rowcount)
