"""Puts records and runs into the tables, each once, and keeps count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, select, update
from sqlalchemy.dialects import postgresql, sqlite

from measure.distance import extents, family
from measure.measurement import Status
from measure.record import Record
from measure.rows import run_to_row, to_row
from measure.run import Run
from measure.schema import measurements, pairs, runs, targets, workloads
from spaces.canonical import canonical_json
from spaces.target import Target
from spaces.workload import Workload

_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def insert(connection: Connection, records: Sequence[Record]) -> int:
    """Insert the records that are not there yet; their number."""
    ids = _pair_ids(connection, records)
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        pair = ids[record.workload.key, record.target]
        rows.setdefault(record.key, to_row(record) | {"pair_id": pair})
    _lock(connection, ids.values())
    known = select(measurements.c.key).where(measurements.c.key.in_(rows))
    for key in connection.scalars(known):
        del rows[key]
    if rows:
        _count(connection, list(rows.values()))
        connection.execute(measurements.insert(), list(rows.values()))
    return len(rows)


def insert_runs(connection: Connection, found: Sequence[Run]) -> None:
    """Insert runs; of one that is there already the state with the later heartbeat stays."""
    ids = _pair_ids(connection, found)
    for run in sorted(found, key=lambda run: run.key):
        row = run_to_row(run) | {"pair_id": ids[run.workload.key, run.target]}
        statement = _INSERTS[connection.dialect.name](runs).values(row)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=[runs.c.key],
                set_={name: statement.excluded[name] for name in row if name != "key"},
                where=runs.c.heartbeat < statement.excluded.heartbeat,
            )
        )


def _pair_ids(
    connection: Connection, parts: Iterable[Record | Run]
) -> dict[tuple[str, Target], int]:
    """The ids of the pairs of workload and target that these are of.

    What is new is inserted in the order of its key, so that no two writers wait for each other.
    """
    found = {(part.workload.key, part.target): part.workload for part in parts}
    by_key = {workload.key: workload for workload in found.values()}
    by_fingerprint = {target.fingerprint: target for _, target in found}
    workload_ids = {key: _workload_id(connection, by_key[key]) for key in sorted(by_key)}
    target_ids = {
        by_fingerprint[name]: _target_id(connection, by_fingerprint[name])
        for name in sorted(by_fingerprint)
    }
    wanted = {pair: (workload_ids[pair[0]], target_ids[pair[1]]) for pair in found}
    ids = {both: _pair_id(connection, *both) for both in sorted(wanted.values())}
    return {pair: ids[both] for pair, both in wanted.items()}


def _workload_id(connection: Connection, workload: Workload) -> int:
    row = {
        "key": workload.key,
        "operator": workload.operator,
        "family": family(workload),
        "extents": extents(workload),
        "description": canonical_json(workload.to_json()),
    }
    return _id(connection, [workloads.c.key], row)


def _target_id(connection: Connection, target: Target) -> int:
    description = canonical_json(target.to_json())
    row = {"fingerprint": target.fingerprint, "description": description}
    return _id(connection, [targets.c.fingerprint], row)


def _pair_id(connection: Connection, workload_id: int, target_id: int) -> int:
    row = {"workload_id": workload_id, "target_id": target_id}
    counts = {"trials": 0, "failures": 0, "lost": 0}
    return _id(connection, [pairs.c.workload_id, pairs.c.target_id], row | counts)


def _id(connection: Connection, key: Sequence[Column[Any]], row: dict[str, Any]) -> int:
    """The id of the row with that ``key``, which is inserted if there is none."""
    table = key[0].table
    query = select(table.c.id).where(*(column == row[column.name] for column in key))
    known = connection.execute(query).scalar()
    if known is None:
        statement = _INSERTS[connection.dialect.name](table).values(row)
        connection.execute(statement.on_conflict_do_nothing(index_elements=key))
        known = connection.execute(query).scalar_one()
    return int(known)


def _lock(connection: Connection, ids: Iterable[int]) -> None:
    """Keep other writers from these pairs until the transaction ends, so that counts are right.

    Always in the same order, so that no two wait for each other. SQLite has one writer anyway.
    """
    connection.execute(
        select(pairs.c.id).where(pairs.c.id.in_(set(ids))).order_by(pairs.c.id).with_for_update()
    )


def _count(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Add measurements that are about to be inserted to the counts of their pairs."""
    for pair in {row["pair_id"] for row in rows}:
        own = [row for row in rows if row["pair_id"] == pair]
        statuses = [row["status"] for row in own]
        tried = {row["schedule_digest"] for row in own if row["status"] != Status.LOST}
        known = select(measurements.c.schedule_digest).where(
            measurements.c.pair_id == pair,
            measurements.c.schedule_digest.in_(tried),
            measurements.c.status != Status.LOST,
        )
        tried -= set(connection.scalars(known))
        connection.execute(
            update(pairs)
            .where(pairs.c.id == pair)
            .values(
                trials=pairs.c.trials + len(tried),
                failures=pairs.c.failures + statuses.count(Status.ERROR),
                lost=pairs.c.lost + statuses.count(Status.LOST),
            )
        )
