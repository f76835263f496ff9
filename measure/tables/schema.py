"""The tables of the tuning database, for SQLite and PostgreSQL alike.

Keys are digests or canonical text, so that rows of two databases can meet in a third. What only
this program reads (schedules, samples, descriptions) is JSON text: exact to the last bit of a
float, the same in every database. A measurement names its run by the run's key, since the two
may come here in any order, or one without the other.
"""

from __future__ import annotations

from functools import partial

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
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

HEAD = "0008"
"""The revision of ``measure/tables/migrations`` that the tables below describe."""

MEANING = "meaning"
"""A table's meaning stands under this key of its ``info``; a column's is its ``doc``."""

VERSION_TABLE = "tilewright_schema"
"""Holds the revision a database is at; a database without it is not ours."""

_Required = partial(Column, nullable=False)
_Id = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER keys count up in SQLite

metadata = MetaData()

workloads = Table(
    "workloads",
    metadata,
    Column(
        "id", _Id, primary_key=True, doc="number of the row; other databases have other numbers"
    ),
    _Required(
        "key",
        Text,
        unique=True,
        doc="canonical text that identifies the workload in every database",
    ),
    _Required(
        "operator", String(64), index=True, doc="name of the operator; `program` where it has none"
    ),
    _Required(
        "family",
        Text,
        doc="JSON object: dtypes, layouts, epilogue; the nearest workload is found by it",
    ),
    _Required("extents", Text, doc="JSON object: the extent of each axis"),
    _Required("text", Text, doc="text that people read and may type"),
    _Required("flops", Double, doc="floating-point operations of one call"),
    _Required("description", Text, doc="JSON object that the workload is read from"),
    info={MEANING: "Each workload that somebody tuned, once."},
)

targets = Table(
    "targets",
    metadata,
    Column("id", _Id, primary_key=True, doc="number of the row"),
    _Required(
        "fingerprint",
        String(64),
        unique=True,
        doc="digest of hardware, compiler and threads: equal ones are comparable",
    ),
    _Required("description", Text, doc="JSON object that the target is read from"),
    info={MEANING: "Each target that something was measured on, once."},
)

pairs = Table(
    "pairs",
    metadata,
    Column("id", _Id, primary_key=True, doc="number of the row"),
    _Required("workload_id", _Id, ForeignKey("workloads.id"), doc="the workload"),
    _Required("target_id", _Id, ForeignKey("targets.id"), index=True, doc="the target"),
    _Required("trials", BigInteger, doc="schedules that were tried, each counted once"),
    _Required("failures", BigInteger, doc="attempts that failed by the schedule's own fault"),
    _Required("lost", BigInteger, doc="attempts that the machine lost"),
    UniqueConstraint("workload_id", "target_id"),
    info={MEANING: "A workload on a target, with counts of its measurements."},
)

runs = Table(
    "runs",
    metadata,
    Column("id", _Id, primary_key=True, doc="number of the row"),
    _Required(
        "key", String(64), unique=True, doc="random text that identifies the run in every database"
    ),
    _Required("pair_id", _Id, ForeignKey("pairs.id"), doc="the workload and target"),
    _Required(
        "session",
        Text,
        index=True,
        doc="job that the run belongs to; `resume` takes it; empty for none",
    ),
    _Required("command", Text, doc="command that the user typed"),
    _Required("seed", BigInteger, doc="seed of the search's random numbers"),
    _Required(
        "configuration",
        Text,
        doc="JSON object: trials, seconds, patience, search, model and numerics of the run",
    ),
    _Required(
        "versions",
        Text,
        doc="JSON object: versions of packages and templates, and the process that ran",
    ),
    _Required("started_at", Double, doc="Unix time of the start"),
    _Required("heartbeat", Double, doc="Unix time of the last sign of life"),
    Column("ended_at", Double, doc="Unix time of the end; null until then"),
    _Required(
        "reason", Text, doc="what ended the run, such as `trials` or `seconds`; empty until then"
    ),
    Column(
        "peak_gflops",
        Double,
        doc="GFLOP/s that the machine reached on the element type; null where unknown",
    ),
    Column(
        "library_seconds",
        Double,
        doc="latency of the library that the run was compared with; null where unknown",
    ),
    info={MEANING: "Each run of the tuner on a workload and target."},
)

measurements = Table(
    "measurements",
    metadata,
    Column(
        "id",
        _Id,
        primary_key=True,
        doc="number of the row; rises in the order in which attempts became known here",
    ),
    _Required(
        "key", String(64), unique=True, doc="digest that identifies the attempt in every database"
    ),
    _Required("pair_id", _Id, ForeignKey("pairs.id"), doc="the workload and target"),
    _Required(
        "template_version", Text, doc="the schedule's template with its version, such as `rows.4`"
    ),
    _Required(
        "schedule_digest", String(64), doc="SHA-256 of `schedule`, by which its attempts are found"
    ),
    _Required("schedule", Text, doc="JSON object: the template and the values of its decisions"),
    _Required(
        "status",
        String(16),
        doc="`ok`, `slow` (stopped after one call), `error` (its own) or `lost` (the machine's)",
    ),
    _Required(
        "round",
        String(16),
        doc="`search`, `preliminary` or `final`: the comparison that the times are from",
    ),
    _Required(
        "doubted",
        Boolean,
        doc="true where a later run could not confirm the score; such a row ranks last",
    ),
    Column(
        "rank_score",
        Double,
        doc="seconds that the best known is ordered by; null for what may not win",
    ),
    Column("score", Double, doc="latency of one call in seconds; null unless the kernel ran"),
    _Required(
        "samples",
        Text,
        doc="JSON list: raw times in seconds, each divided by the calls that it spans",
    ),
    _Required(
        "reference_samples",
        Text,
        doc="JSON list: times of the reference kernel in the same rounds, which show drift",
    ),
    _Required("clock", Text, doc="`cpu` (CPU time of the thread), `wall` or `device`"),
    Column(
        "error_kind",
        String(32),
        doc="kind of failure, such as `compile_error` or `wrong_result`; null for none",
    ),
    _Required(
        "error_text", Text, doc="words of the compiler, the check or the driver; empty for none"
    ),
    _Required("build_seconds", Double, doc="seconds that code generation and compiling took"),
    _Required("run_seconds", Double, doc="seconds that checking and timing took"),
    _Required("started_at", Double, doc="Unix time of the attempt's start"),
    _Required("recorded_at", Double, doc="Unix time at which this database received the row"),
    _Required("run", Text, doc="`key` of the run; text, since a row may arrive before its run"),
    Column(
        "origin",
        Text,
        doc="step of the search that proposed the schedule, such as `random`; null for none",
    ),
    Column(
        "place_in_run",
        BigInteger,
        doc="place among the candidates of the run, from 0; null without `origin`",
    ),
    Column(
        "predicted_mean",
        Double,
        doc="prediction of the cost model in its own unit; null where no model was asked",
    ),
    Column(
        "predicted_spread",
        Double,
        doc="standard deviation of that prediction; null where no model was asked",
    ),
    _Required("host", Text, doc="name of the host"),
    _Required("device", Text, doc="name of the CPU or GPU"),
    _Required("toolchain", Text, doc="compiler with its version"),
    _Required(
        "info",
        Text,
        doc="JSON object: registers, spills, waiting and more, as the builder and runner report it",
    ),
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
    info={MEANING: "Each attempt to build, check and time a schedule, failures included."},
)

_versions = Table(
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), primary_key=True),
)


def make_tables(connection: Connection) -> None:
    """Make all tables in an empty database, at :data:`HEAD`, as the revisions would."""
    for index in measurements.indexes:  # said for SQLite alone, which loads no other dialect
        where = index.dialect_options["sqlite"]["where"]
        index.dialect_options[connection.dialect.name]["where"] = where
    metadata.create_all(connection)
    _versions.create(connection)
    connection.execute(_versions.insert().values(version_num=HEAD))
