"""Adds runs, pairs of workload and target with counts, and a version of its own to each record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from tilewright.measure.tables.earlier import may_be_the_machine, own_version

revision = "0002"
down_revision = "0001"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_PAGE = 1000


def upgrade() -> None:
    """Add the tables and columns, and bring what was measured into them."""
    _describe_workloads()
    _make_pairs()
    _make_runs()
    for index in ("best_known", "attempts_of_schedule"):
        op.drop_index(index, "measurements")
    op.rename_table("measurements", "measurements_0001")
    _make_measurements()
    _copy()
    op.drop_table("measurements_0001")
    _make_indexes()
    _count()


def _describe_workloads() -> None:
    """Add the columns by which the nearest workloads are found."""
    for name in ("family", "extents"):
        column = sa.Column(name, sa.Text, nullable=False, server_default="{}")
        op.add_column("workloads", column)
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT id, description FROM workloads")).all()
    for id, description in rows:
        parameters = json.loads(description)["parameters"]
        parts = {
            "family": {k: v for k, v in parameters.items() if isinstance(v, str)},
            "extents": {k: v for k, v in parameters.items() if not isinstance(v, str)},
        }
        update = sa.text("UPDATE workloads SET family = :family, extents = :extents WHERE id = :id")
        connection.execute(update, {"id": id, **{k: _json(v) for k, v in parts.items()}})


def _make_pairs() -> None:
    op.create_table(
        "pairs",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("workload_id", _ID, sa.ForeignKey("workloads.id"), nullable=False),
        sa.Column("target_id", _ID, sa.ForeignKey("targets.id"), nullable=False, index=True),
        sa.Column("trials", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.BigInteger, nullable=False),
        sa.Column("lost", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("workload_id", "target_id"),
    )
    op.execute(
        "INSERT INTO pairs (workload_id, target_id, trials, failures, lost) "
        "SELECT workload_id, target_id, 0, 0, 0 FROM measurements "
        "GROUP BY workload_id, target_id ORDER BY min(id)"
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("pair_id", _ID, sa.ForeignKey("pairs.id"), nullable=False),
        sa.Column("session", sa.Text, nullable=False, index=True),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("budget", sa.Text, nullable=False),
        sa.Column("versions", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("heartbeat", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("peak_gflops", sa.Double),
        sa.Column("library_seconds", sa.Double),
    )


def _make_measurements() -> None:
    op.create_table(
        "measurements",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("pair_id", _ID, sa.ForeignKey("pairs.id"), nullable=False),
        sa.Column("template_version", sa.Text, nullable=False),
        sa.Column("schedule_digest", sa.String(64), nullable=False),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("round", sa.String(16), nullable=False),
        sa.Column("doubted", sa.Boolean, nullable=False),
        sa.Column("rank_score", sa.Double),
        sa.Column("score", sa.Double),
        sa.Column("samples", sa.Text, nullable=False),
        sa.Column("reference_samples", sa.Text, nullable=False),
        sa.Column("clock", sa.Text, nullable=False),
        sa.Column("error_kind", sa.String(32)),
        sa.Column("error_text", sa.Text, nullable=False),
        sa.Column("build_seconds", sa.Double, nullable=False),
        sa.Column("run_seconds", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("origin", sa.Text),
        sa.Column("place_in_run", sa.BigInteger),
        sa.Column("predicted_mean", sa.Double),
        sa.Column("predicted_spread", sa.Double),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("device", sa.Text, nullable=False),
        sa.Column("toolchain", sa.Text, nullable=False),
        sa.Column("info", sa.Text, nullable=False),
    )


def _make_indexes() -> None:
    op.create_index(
        "best_known",
        "measurements",
        ["pair_id", "doubted", "rank_score", "id"],
        sqlite_where=sa.text("rank_score IS NOT NULL"),
        postgresql_where=sa.text("rank_score IS NOT NULL"),
    )
    op.create_index("attempts_of_schedule", "measurements", ["pair_id", "schedule_digest", "round"])
    op.create_index("measurements_of_run", "measurements", ["run"])


def _copy() -> None:
    """Copy every measurement, in the order of its row, under its new key."""
    connection = op.get_bind()
    new = sa.Table("measurements", sa.MetaData(), autoload_with=connection)
    last = 0
    for page in _pages(connection):
        rows = {row["key"]: row for row in reversed([_present_form(old) for old in page])}
        known = sa.select(new.c.key).where(new.c.key.in_(rows))
        for key in connection.scalars(known).all():
            del rows[key]  # the same attempt, once as one template's and once as several's
        if rows:
            connection.execute(new.insert(), sorted(rows.values(), key=lambda row: row["id"]))
            last = max(row["id"] for row in rows.values())
    if connection.dialect.name == "postgresql" and last:
        connection.execute(
            sa.text("SELECT setval(pg_get_serial_sequence('measurements', 'id'), :last)"),
            {"last": last},
        )


def _pages(connection: sa.Connection) -> Iterator[list[dict[str, Any]]]:
    query = sa.text(
        "SELECT m.*, p.id AS pair_id, w.key AS workload_key, w.description AS workload, "
        "t.fingerprint FROM measurements_0001 m "
        "JOIN pairs p ON p.workload_id = m.workload_id AND p.target_id = m.target_id "
        "JOIN workloads w ON w.id = m.workload_id JOIN targets t ON t.id = m.target_id "
        "WHERE m.id > :last ORDER BY m.id LIMIT :page"
    )
    last = 0
    while rows := connection.execute(query, {"last": last, "page": _PAGE}).mappings().all():
        yield [dict(row) for row in rows]
        last = rows[-1]["id"]


def _present_form(old: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the new table."""
    new = {k: v for k, v in old.items() if k not in _REPLACED}
    schedule = json.loads(old["schedule"])
    new["template_version"] = own_version(old["space_version"], schedule["template"])
    words = (
        old["workload_key"],
        old["fingerprint"],
        new["template_version"],
        _json(schedule),
        old["round"],
        old["started_at"] + 0.0,
    )
    new["key"] = hashlib.sha256(_json(words).encode()).hexdigest()
    fused = bool(json.loads(old["workload"])["parameters"].get("epilogue"))
    if old["status"] == "error" and may_be_the_machine(old["error_kind"], old["error_text"], fused):
        new["status"] = "lost"
    new |= {"run": old["session"], "doubted": False, "host": "", "device": "", "toolchain": ""}
    return new


_REPLACED = (
    *("workload_id", "target_id", "space_version", "session"),
    *("workload_key", "workload", "fingerprint"),
)


def _count() -> None:
    own = "FROM measurements m WHERE m.pair_id = pairs.id AND m.status"
    op.execute(
        "UPDATE pairs SET "
        f"trials = (SELECT count(DISTINCT m.schedule_digest) {own} != 'lost'), "
        f"failures = (SELECT count(*) {own} = 'error'), "
        f"lost = (SELECT count(*) {own} = 'lost')"
    )


def _json(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))
