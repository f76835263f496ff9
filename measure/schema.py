"""The tables of the tuning database, for SQLite and PostgreSQL alike.

Keys are digests or canonical text, so that rows of two databases can meet in a third. What only
this program reads (schedules, samples, descriptions) is JSON text: exact to the last bit of a
float, the same in every database.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

HEAD = "0001"
"""The revision of ``measure/migrations`` that the tables below describe."""

VERSION_TABLE = "tilewright_schema"
"""Holds the revision a database is at; a database without it is not ours."""

_Id = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER keys count up in SQLite

metadata = MetaData()

workloads = Table(
    "workloads",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("operator", String(64), nullable=False, index=True),
    Column("description", Text, nullable=False),
)

targets = Table(
    "targets",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("description", Text, nullable=False),
)

measurements = Table(
    "measurements",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("key", String(64), nullable=False, unique=True),
    Column("workload_id", _Id, ForeignKey("workloads.id"), nullable=False),
    Column("target_id", _Id, ForeignKey("targets.id"), nullable=False),
    Column("space_version", Text, nullable=False),
    Column("schedule_digest", String(64), nullable=False),
    Column("schedule", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("round", String(16), nullable=False),
    Column("rank_score", Double),  # what best-known is ordered by; null for what may not win
    Column("score", Double),
    Column("samples", Text, nullable=False),
    Column("reference_samples", Text, nullable=False),
    Column("clock", String(16), nullable=False),
    Column("error_kind", String(32)),
    Column("error_text", Text, nullable=False),
    Column("build_seconds", Double, nullable=False),
    Column("run_seconds", Double, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("recorded_at", Double, nullable=False),
    Column("session", Text, nullable=False),
    Column("info", Text, nullable=False),
    Index("best_known", "workload_id", "target_id", "rank_score", "id"),
    Index("attempts_of_schedule", "workload_id", "target_id", "schedule_digest", "round"),
)
