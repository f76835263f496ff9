"""The tables of the tuning database, for SQLite and PostgreSQL alike.

Keys are digests or canonical text, so that rows of two databases can meet in a third. What only
this program reads (schedules, samples, descriptions) is JSON text: exact to the last bit of a
float, the same in every database. A measurement names its run by the run's key, since the two
may come here in any order, or one without the other.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

HEAD = "0007"
"""The revision of ``measure/tables/migrations`` that the tables below describe."""

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
    Column("family", Text, nullable=False),  # with extents: see measure.tables.likeness.distance
    Column("extents", Text, nullable=False),
    Column("text", Text, nullable=False),  # this and the operations: see measure.tables.summary
    Column("flops", Double, nullable=False),
    Column("description", Text, nullable=False),
)

targets = Table(
    "targets",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("description", Text, nullable=False),
)

# A workload on a target, and what was counted of its measurements: the schedules that were
# tried, the failures of schedules, the attempts that the machine lost.
pairs = Table(
    "pairs",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("workload_id", _Id, ForeignKey("workloads.id"), nullable=False),
    Column("target_id", _Id, ForeignKey("targets.id"), nullable=False, index=True),
    Column("trials", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("lost", BigInteger, nullable=False),
    UniqueConstraint("workload_id", "target_id"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("key", String(64), nullable=False, unique=True),
    Column("pair_id", _Id, ForeignKey("pairs.id"), nullable=False),
    Column("session", Text, nullable=False, index=True),
    Column("command", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("configuration", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("heartbeat", Double, nullable=False),
    Column("ended_at", Double),
    Column("reason", Text, nullable=False),
    Column("peak_gflops", Double),
    Column("library_seconds", Double),
)

measurements = Table(
    "measurements",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("key", String(64), nullable=False, unique=True),
    Column("pair_id", _Id, ForeignKey("pairs.id"), nullable=False),
    Column("template_version", Text, nullable=False),
    Column("schedule_digest", String(64), nullable=False),
    Column("schedule", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("round", String(16), nullable=False),
    Column("doubted", Boolean, nullable=False),
    Column("rank_score", Double),  # what best-known is ordered by; null for what may not win
    Column("score", Double),
    Column("samples", Text, nullable=False),
    Column("reference_samples", Text, nullable=False),
    Column("clock", Text, nullable=False),
    Column("error_kind", String(32)),
    Column("error_text", Text, nullable=False),
    Column("build_seconds", Double, nullable=False),
    Column("run_seconds", Double, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("recorded_at", Double, nullable=False),
    Column("run", Text, nullable=False),
    Column("origin", Text),  # this and the next three: see measure.records.run.Proposal
    Column("place_in_run", BigInteger),
    Column("predicted_mean", Double),
    Column("predicted_spread", Double),
    Column("host", Text, nullable=False),
    Column("device", Text, nullable=False),
    Column("toolchain", Text, nullable=False),
    Column("info", Text, nullable=False),
    Index(
        "best_known",
        *("pair_id", "doubted", "rank_score", "id"),
        sqlite_where=text("rank_score IS NOT NULL"),
    ),
    Index(
        "comparisons",
        *("pair_id", "id"),
        sqlite_where=text("round = 'final'"),
    ),
    Index("attempts_of_schedule", "pair_id", "schedule_digest", "round"),
    Index("measurements_of_run", "run"),
)
