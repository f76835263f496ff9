"""Puts records and runs into the tables, each once, and keeps count.

Workloads, targets and pairs are always written in this order, and each in the order of its keys.
Then all pairs that a writer has something of are locked, before their runs and measurements are
touched. So of two writers one waits for the other, and never both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, and_, bindparam, select, update

from tilewright.measure.records.fields import Fields
from tilewright.measure.records.measurement import Status
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Run
from tilewright.measure.tables.described import described_target, described_workload
from tilewright.measure.tables.rows import run_to_row, to_row
from tilewright.measure.tables.schema import measurements, pairs, runs, targets, workloads
from tilewright.measure.tables.similarity.distance import extents, family
from tilewright.spaces.target import Target
from tilewright.spaces.validation.canonical import canonical_json

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

PIECE = 1000
"""Says how many rows a statement is about at most; databases limit the parameters of one."""

Key = tuple[Any, ...]
Row = dict[str, Any]
Part = TypeVar("Part")


def pieces(parts: Iterable[Part], size: int = PIECE) -> Iterator[list[Part]]:
    """Yield all of ``parts``, at most ``size`` at a time."""
    rest = iter(parts)
    while piece := list(islice(rest, size)):
        yield piece


class Pair(NamedTuple):
    """The workload and target of a record or a run."""

    workload: Workload
    target: Target


def insert(connection: Connection, records: Sequence[Record], found: Sequence[Run] = ()) -> int:
    """Insert the records that are not there yet, as they are (``measure.tables.rows.as_read``); how
    many these are. What is there and doubted now becomes so. Of a run that is there already the
    state with the later heartbeat stays."""
    pairs = (Pair(record.workload, record.target) for record in records)
    return insert_rows(connection, list(zip(pairs, map(to_row, records), strict=True)), found)


def insert_rows(
    connection: Connection, rows: Sequence[tuple[Pair, Row]], found: Sequence[Run] = ()
) -> int:
    """Return the same of rows of records, each with what it is of."""
    ids = _pair_ids(connection, (*found, *(pair for pair, _ in rows)))
    _lock(connection, ids.values())
    _insert_runs(connection, found, ids)
    made = (row | {"pair_id": ids[_pair(pair)]} for pair, row in rows)
    return sum(_insert_piece(connection, piece) for piece in pieces(made))


def _insert_runs(connection: Connection, found: Sequence[Run], ids: Mapping[Key, int]) -> None:
    if not found:
        return
    latest = {run.key: run for run in sorted(found, key=lambda run: run.heartbeat)}
    rows = [
        run_to_row(latest[key]) | {"pair_id": ids[_pair(latest[key])]} for key in sorted(latest)
    ]
    statement = _insert(connection, runs)
    changing = ("heartbeat", "ended_at", "reason")  # what a role that appends may change
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[runs.c.key],
            set_={name: statement.excluded[name] for name in changing},
            where=runs.c.heartbeat < statement.excluded.heartbeat,
        ),
        rows,
    )


def beat(connection: Connection, keys: Collection[str], now: float) -> None:
    """Note that the runs with these keys are alive."""
    if keys:
        connection.execute(update(runs).where(runs.c.key.in_(keys)).values(heartbeat=now))


def _insert_piece(connection: Connection, rows: Sequence[Row]) -> int:
    found = {row["key"]: row for row in reversed(rows)}
    known = set(connection.scalars(_KNOWN, {"keys": list(found)}))
    new = [row for key, row in reversed(found.items()) if key not in known]
    if doubted := [key for key in known if found[key]["doubted"]]:
        connection.execute(_DOUBT, {"keys": doubted})
    if new:
        _count(connection, new)
        _append(connection, new)
    return len(new)


def _append(connection: Connection, rows: Sequence[Row]) -> None:
    """Insert measurements by the driver's own means: thirty columns of many rows each."""
    into = f"{measurements.name} ({', '.join(rows[0])})"
    values = [tuple(row.values()) for row in rows]
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(rows[0]))
        connection.exec_driver_sql(f"INSERT INTO {into} VALUES ({marks})", values)
        return
    raw: Any = connection.connection.driver_connection
    with raw.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as lines:
        for row in values:
            lines.write_row(row)


# -- workloads, targets and pairs of them ----------------------------------------------------


def _pair(part: Pair | Run) -> Key:
    return part.workload.key, part.target.fingerprint


def _pair_ids(connection: Connection, parts: Iterable[Pair | Run]) -> dict[Key, int]:
    """Return the ids of the pairs that these are of, by the keys of their workloads and targets."""
    found = {_pair(part): part for part in parts}
    ids: dict[Key, int] = {}
    for piece in pieces(found):
        keys, fingerprints = (list(set(own)) for own in zip(*piece, strict=True))
        named = {"keys": keys, "fingerprints": fingerprints}
        rows = connection.execute(_PAIRS, named)  # and some of theirs that nobody asked for
        ids |= {(key, name): id for id, key, name in rows if (key, name) in found}
    missing = {pair: part for pair, part in found.items() if pair not in ids}
    return ids | _new_pair_ids(connection, missing) if missing else ids


def _new_pair_ids(connection: Connection, found: Mapping[Key, Pair | Run]) -> dict[Key, int]:
    """Return the same of pairs some of which have no rows yet."""
    by_key = {(part.workload.key,): part.workload for part in found.values()}
    by_fingerprint = {(part.target.fingerprint,): part.target for part in found.values()}
    workload_ids = _ids(connection, [workloads.c.key], by_key, _workload_row)
    target_ids = _ids(connection, [targets.c.fingerprint], by_fingerprint, _target_row)
    both = {(key, name): (workload_ids[key,], target_ids[name,]) for key, name in found}
    columns = [pairs.c.workload_id, pairs.c.target_id]
    ids = _ids(connection, columns, {key: key for key in both.values()}, _pair_row)
    return {pair: ids[key] for pair, key in both.items()}


def _workload_row(workload: Workload) -> Row:
    description = workload.to_json()
    described_workload(Fields({"workload": description}))  # or else it could not be read back
    return {
        "key": workload.key,
        "operator": workload.operator,
        "family": family(workload),
        "extents": extents(workload),
        "text": str(workload),
        "flops": float(workload.flops),
        "description": canonical_json(description),
    }


def _target_row(target: Target) -> Row:
    description = target.to_json()
    described_target(Fields({"target": description}))
    return {"fingerprint": target.fingerprint, "description": canonical_json(description)}


def _pair_row(key: Key) -> Row:
    workload_id, target_id = key
    counts = {"trials": 0, "failures": 0, "lost": 0}
    return {"workload_id": workload_id, "target_id": target_id, **counts}


def _ids(
    connection: Connection,
    columns: Sequence[Column[Any]],
    things: Mapping[Key, Part],
    to_row: Callable[[Part], Row],
) -> dict[Key, int]:
    """Return the ids of the rows that have these keys in ``columns``; missing rows are made of the
    things that the keys are of."""
    ids = _known_ids(connection, columns, things)
    missing = sorted(things.keys() - ids.keys())
    statement = _insert(connection, columns[0].table)
    for piece in pieces(missing):
        rows = [to_row(things[key]) for key in piece]
        connection.execute(statement.on_conflict_do_nothing(index_elements=columns), rows)
    return ids | _known_ids(connection, columns, missing)


def _insert(connection: Connection, table: Any) -> Any:
    """Return an insertion in the database's own dialect, which knows conflicts; no other is
    loaded."""
    return import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table)


def _known_ids(
    connection: Connection, columns: Sequence[Column[Any]], keys: Collection[Key]
) -> dict[Key, int]:
    query = select(columns[0].table.c.id, *columns)
    found: dict[Key, int] = {}
    for piece in pieces(keys):
        rows = connection.execute(query.where(_among(columns, piece)))
        found |= {tuple(key): id for id, *key in rows}
    return found


def _among(columns: Sequence[Column[Any]], keys: Sequence[Key]) -> ColumnElement[bool]:
    """Return True of rows with one of these keys, and of few others; each column has an index to
    use, as SQLite has none for whole keys in a list."""
    values = zip(*keys, strict=True)
    return and_(*(c.in_(set(own)) for c, own in zip(columns, values, strict=True)))


# -- counts ----------------------------------------------------------------------------------


def _lock(connection: Connection, ids: Iterable[int]) -> None:
    """Keep other writers from these pairs until the transaction ends, so that counts are right.

    SQLite has one writer anyway.
    """
    if connection.dialect.name == "sqlite":
        return
    for piece in pieces(sorted(set(ids))):
        connection.execute(_LOCK, {"pairs": piece})


def _count(connection: Connection, rows: Sequence[Row]) -> None:
    """Add measurements that are about to be inserted to the counts of their pairs."""
    lost = Counter(row["pair_id"] for row in rows if row["status"] == Status.LOST)
    failures = Counter(row["pair_id"] for row in rows if row["status"] == Status.ERROR)
    tried: dict[int, set[str]] = {row["pair_id"]: set() for row in rows}
    for row in rows:
        if row["status"] != Status.LOST:
            tried[row["pair_id"]].add(row["schedule_digest"])
    for pair in connection.scalars(_TRIED, {"pairs": list(tried)}).all():
        digests = {"pair": pair, "digests": list(tried[pair])}
        tried[pair] -= set(connection.scalars(_TRIED_BEFORE, digests))
    more = [
        {"pair": id, "more": len(new), "more_failures": failures[id], "more_lost": lost[id]}
        for id, new in sorted(tried.items())
    ]
    connection.execute(_ADD, more)


_KNOWN = select(measurements.c.key).where(measurements.c.key.in_(bindparam("keys", expanding=True)))
_DOUBT = (
    update(measurements)
    .where(measurements.c.key.in_(bindparam("keys", expanding=True)))
    .values(doubted=True)
)
_PAIRS = (
    select(pairs.c.id, workloads.c.key, targets.c.fingerprint)
    .join(workloads, pairs.c.workload_id == workloads.c.id)
    .join(targets, pairs.c.target_id == targets.c.id)
    .where(
        workloads.c.key.in_(bindparam("keys", expanding=True)),
        targets.c.fingerprint.in_(bindparam("fingerprints", expanding=True)),
    )
)
_LOCK = (
    select(pairs.c.id)
    .where(pairs.c.id.in_(bindparam("pairs", expanding=True)))
    .order_by(pairs.c.id)
    .with_for_update()
)
_TRIED = select(pairs.c.id).where(
    pairs.c.id.in_(bindparam("pairs", expanding=True)), pairs.c.trials > 0
)
_TRIED_BEFORE = select(measurements.c.schedule_digest).where(
    measurements.c.pair_id == bindparam("pair"),
    measurements.c.schedule_digest.in_(bindparam("digests", expanding=True)),
    measurements.c.status != str(Status.LOST),
)
_ADD = (
    update(pairs)
    .where(pairs.c.id == bindparam("pair"))
    .values(
        trials=pairs.c.trials + bindparam("more"),
        failures=pairs.c.failures + bindparam("more_failures"),
        lost=pairs.c.lost + bindparam("more_lost"),
    )
)
