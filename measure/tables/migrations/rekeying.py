"""Gives workloads new keys, for a migration.

Rows that have become one workload are merged, with their pairs of workload and target, and
measurements get the keys that they would get today."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tilewright.spaces.validation.canonical import canonical_json

_PAGE = 1000


def rekey(connection: sa.Connection, found: Sequence[tuple[int, str, str]]) -> None:
    """Give workloads, by their ids, new keys and families; the first row of a key stays."""
    first: dict[str, int] = {}
    for id, key, words in found:
        known = connection.scalar(_KNOWN, {"key": key})
        survivor = first.setdefault(key, known or id)
        if survivor == id:
            update = "UPDATE workloads SET key = :key, family = :words WHERE id = :id"
            _run(connection, update, id=id, key=key, words=words)
        else:
            _merge_workloads(connection, id, survivor)
    for key, id in first.items():
        for pair in connection.execute(_PAIRS, {"workload": id}).all():
            _rekey(connection, key, pair)


_KNOWN = sa.text("SELECT id FROM workloads WHERE key = :key")
_PAIRS = sa.text(
    "SELECT p.id, p.target_id, t.fingerprint FROM pairs p JOIN targets t ON t.id = p.target_id "
    "WHERE p.workload_id = :workload ORDER BY p.id"
)


def _run(connection: sa.Connection, statement: str, **values: object) -> None:
    connection.execute(sa.text(statement), values)


# -- rows that become one --------------------------------------------------------------------


def _merge_workloads(connection: sa.Connection, id: int, survivor: int) -> None:
    known = connection.execute(_PAIRS, {"workload": survivor}).all()
    pairs = {pair.target_id: pair.id for pair in known}
    for pair in connection.execute(_PAIRS, {"workload": id}).all():
        same = pairs.get(pair.target_id)
        if same is None:
            move = "UPDATE pairs SET workload_id = :survivor WHERE id = :pair"
            _run(connection, move, survivor=survivor, pair=pair.id)
        else:
            _merge_pairs(connection, pair.id, same)
    _run(connection, "DELETE FROM workloads WHERE id = :id", id=id)


def _merge_pairs(connection: sa.Connection, id: int, survivor: int) -> None:
    for table in ("measurements", "runs"):
        move = f"UPDATE {table} SET pair_id = :survivor WHERE pair_id = :id"
        _run(connection, move, survivor=survivor, id=id)
    _run(connection, "DELETE FROM pairs WHERE id = :id", id=id)


# -- keys of measurements --------------------------------------------------------------------


def _rekey(connection: sa.Connection, workload: str, pair: sa.Row[Any]) -> None:
    """Rekey all measurements of a pair in the order of their rows, and what is counted of them."""
    own = sa.text("SELECT id FROM measurements WHERE pair_id = :pair ORDER BY id")
    ids = connection.scalars(own, {"pair": pair.id}).all()
    for start in range(0, len(ids), _PAGE):
        page = connection.execute(_KEYED, {"ids": ids[start : start + _PAGE]}).all()
        _set_keys(connection, _keys(workload, pair.fingerprint, page))
    connection.execute(_COUNT, {"pair": pair.id})


_KEYED = sa.text(
    "SELECT id, template_version, schedule, round, started_at FROM measurements "
    "WHERE id IN :ids ORDER BY id"
).bindparams(sa.bindparam("ids", expanding=True))


def _keys(workload: str, fingerprint: str, rows: Sequence[sa.Row[Any]]) -> dict[int, str]:
    """Return the keys of rows by their ids; malformed rows are left out."""
    keys = {row.id: measurement_key(workload, fingerprint, row, row.schedule) for row in rows}
    return {id: key for id, key in keys.items() if key}


def measurement_key(workload: str, fingerprint: str, row: sa.Row[Any], schedule: str) -> str:
    """Return the key of a row with this schedule, as ``measure.records.record.Record`` makes it;
    empty if a column is malformed."""
    texts = (row.template_version, schedule, row.round)
    try:
        words = canonical_json((workload, fingerprint, *texts, row.started_at + 0.0))
    except TypeError:  # a column of another type
        return ""
    return hashlib.sha256(words.encode()).hexdigest()


def _set_keys(connection: sa.Connection, keys: Mapping[int, str]) -> None:
    """Set new keys. Where several rows turn out to be the same attempt, keep the first."""
    rows = connection.execute(_HOLDERS, {"keys": [*keys.values()]})
    holders = {row.key: row.id for row in rows}
    again = []
    for id, key in keys.items():
        if (holder := holders.setdefault(key, id)) != id:
            again.append({"id": id, "holder": holder})
    _drop(connection, again)
    if new := [{"id": id, "key": key} for id, key in keys.items() if holders[key] == id]:
        connection.execute(sa.text("UPDATE measurements SET key = :key WHERE id = :id"), new)


def _drop(connection: sa.Connection, again: Sequence[Mapping[str, int]]) -> None:
    """Delete duplicate rows; a doubt about one moves to the row that stays."""
    if again:
        connection.execute(_DOUBT, again)
        connection.execute(sa.text("DELETE FROM measurements WHERE id = :id"), again)


_HOLDERS = sa.text("SELECT key, id FROM measurements WHERE key IN :keys").bindparams(
    sa.bindparam("keys", expanding=True)
)
_DOUBT = sa.text(
    "UPDATE measurements SET doubted = :true WHERE id = :holder "
    "AND EXISTS (SELECT 1 FROM measurements again WHERE again.id = :id AND again.doubted = :true)"
).bindparams(sa.bindparam("true", True))
_OWN = "FROM measurements m WHERE m.pair_id = pairs.id AND m.status"
_COUNT = sa.text(
    "UPDATE pairs SET "
    f"trials = (SELECT count(DISTINCT m.schedule_digest) {_OWN} != 'lost'), "
    f"failures = (SELECT count(*) {_OWN} = 'error'), "
    f"lost = (SELECT count(*) {_OWN} = 'lost') WHERE id = :pair"
)
