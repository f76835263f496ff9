"""The columns of a table of measurements: what each is called, holds, and is measured in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from tilewright.costmodel.evaluating.parts import device_of
from tilewright.costmodel.feature_names import describe
from tilewright.measure.busy import why_busy
from tilewright.measure.records.record import Record
from tilewright.spaces.registry import numerics_of
from tilewright.spaces.schedule import LARGEST, Value

FEATURE = "feature."


class Kind(StrEnum):
    """The type of a column's values. Any value may be missing."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    FLAG = "flag"


@dataclass(frozen=True)
class Column:
    """One column. ``unit`` is empty where there is none."""

    name: str
    kind: Kind
    unit: str
    meaning: str


@dataclass(frozen=True)
class RecordColumn(Column):
    """A column whose value each record has by itself; None and the empty text are missing."""

    of: Callable[[Record], Any]


def _gflops(record: Record) -> float | None:
    score = record.measurement.score
    return record.workload.flops / score / 1e9 if score else None


def _compiled(name: str) -> Callable[[Record], Any]:
    """Read one number that the compiler reported; None if it is not a whole number."""

    def of(record: Record) -> int | None:
        value = record.measurement.info.get(name)
        return value if type(value) is int and abs(value) <= LARGEST else None

    return of


def _proposal(name: str) -> Callable[[Record], Any]:
    return lambda record: getattr(record.proposal, name, None)


OF_RECORDS = (
    RecordColumn("key", Kind.TEXT, "", "identifies the attempt in every database", lambda r: r.key),
    RecordColumn("workload", Kind.TEXT, "", "what was computed", lambda r: str(r.workload)),
    RecordColumn("operator", Kind.TEXT, "", "its operator", lambda r: r.workload.operator),
    RecordColumn("device", Kind.TEXT, "", "the hardware", lambda r: device_of(r.target)),
    RecordColumn(
        "target",
        Kind.TEXT,
        "",
        "fingerprint of hardware, compiler and threads: equal ones are comparable",
        lambda r: r.target.fingerprint,
    ),
    RecordColumn("template", Kind.TEXT, "", "the family of kernels", lambda r: r.schedule.template),
    RecordColumn(
        "template_version", Kind.TEXT, "", "and its version", lambda r: r.template_version
    ),
    RecordColumn(
        "numerics",
        Kind.TEXT,
        "",
        "strict, or fast: an algorithm with weaker bounds on errors",
        lambda r: str(numerics_of(r.schedule.template, r.workload, r.target)),
    ),
    RecordColumn(
        "status",
        Kind.TEXT,
        "",
        "ok; slow: right, but timed once only; error: its own failure; lost: the machine's",
        lambda r: str(r.measurement.status),
    ),
    RecordColumn(
        "error_kind",
        Kind.TEXT,
        "",
        "how it failed",
        lambda r: r.measurement.error_kind and str(r.measurement.error_kind),
    ),
    RecordColumn(
        "latency_s",
        Kind.NUMBER,
        "s",
        "time of one call that ranks; of a slow one an upper estimate",
        lambda r: r.measurement.score,
    ),
    RecordColumn(
        "gflops",
        Kind.NUMBER,
        "10^9 FLOP/s",
        "useful operations a second, the epilogue's not counted",
        _gflops,
    ),
    RecordColumn("samples", Kind.INTEGER, "", "times taken", lambda r: len(r.measurement.samples)),
    RecordColumn(
        "median_sample_s",
        Kind.NUMBER,
        "s",
        "their median",
        lambda r: median(r.measurement.samples) if r.measurement.samples else None,
    ),
    RecordColumn(
        "busy",
        Kind.TEXT,
        "",
        "by what signs the machine was busy with other things; empty if there were none",
        lambda r: why_busy(r.measurement),
    ),
    RecordColumn(
        "clock",
        Kind.TEXT,
        "",
        "cpu: thread time; wall; device: events of a GPU",
        lambda r: r.measurement.clock,
    ),
    RecordColumn(
        "round",
        Kind.TEXT,
        "",
        "search, or final: measured again beside the other best; preliminary: before that",
        lambda r: r.measurement.round,
    ),
    RecordColumn(
        "doubted", Kind.FLAG, "", "whether a later run could not confirm it", lambda r: r.doubted
    ),
    RecordColumn("run", Kind.TEXT, "", "the run that it belongs to", lambda r: r.run),
    RecordColumn("origin", Kind.TEXT, "", "who proposed it, such as random", _proposal("origin")),
    RecordColumn(
        "place_in_run", Kind.INTEGER, "", "candidates of its run before it", _proposal("place")
    ),
    RecordColumn(
        "predicted_mean",
        Kind.NUMBER,
        "of its model",
        "what a cost model predicted before",
        _proposal("mean"),
    ),
    RecordColumn(
        "predicted_spread",
        Kind.NUMBER,
        "of its model",
        "and the standard deviation of that",
        _proposal("spread"),
    ),
    RecordColumn(
        "registers",
        Kind.INTEGER,
        "",
        "32-bit registers that a thread of a GPU has, as it was compiled",
        _compiled("registers"),
    ),
    RecordColumn(
        "spill_bytes",
        Kind.INTEGER,
        "B",
        "that a thread of a GPU spills, as it was compiled; such kernels are not run",
        _compiled("spill_bytes"),
    ),
    RecordColumn(
        "build_seconds", Kind.NUMBER, "s", "to compile it", lambda r: r.measurement.build_seconds
    ),
    RecordColumn(
        "run_seconds",
        Kind.NUMBER,
        "s",
        "to verify and time it",
        lambda r: r.measurement.run_seconds,
    ),
    RecordColumn(
        "started_at",
        Kind.NUMBER,
        "s since 1970 (UTC)",
        "when it was measured",
        lambda r: r.measurement.started_at,
    ),
    RecordColumn("host", Kind.TEXT, "", "name of the machine", lambda r: r.measurement.place.host),
    RecordColumn(
        "toolchain",
        Kind.TEXT,
        "",
        "compiler and version",
        lambda r: r.measurement.place.toolchain,
    ),
)

OF_GROUPS = (
    Column("group", Kind.TEXT, "", "workload and target: scores of one group are comparable"),
    Column(
        "score",
        Kind.NUMBER,
        "1",
        "least latency of the group over this one's, failures 0: what cost models learn",
    ),
    Column("split", Kind.TEXT, "", "train or test; all of a workload is in one of them"),
)


def parameter_column(name: str, values: set[type]) -> Column:
    """Return a column of a parameter of workloads."""
    return Column(f"workload.{name}", kind_of(values), "", f"parameter {name} of the workload")


def decision_column(template: str, name: str, values: set[type]) -> Column:
    """Return a column of a decision of one template."""
    meaning = f"decision {name} of template {template}"
    return Column(f"{template}.{name}", kind_of(values), "", meaning)


def feature_column(name: str) -> Column:
    """Return a column of a feature of cost models."""
    about = describe(name)
    return Column(FEATURE + name, Kind.NUMBER, about.unit, about.meaning)


def kind_of(types: set[type]) -> Kind:
    """Return the kind of column for values of these types; text if the types are mixed."""
    kinds = {bool: Kind.FLAG, int: Kind.INTEGER, float: Kind.NUMBER, str: Kind.TEXT}
    return kinds[next(iter(types))] if len(types) == 1 else Kind.TEXT


def cell(kind: Kind, value: Value | float | None) -> Any:
    """Return ``value`` as a column of this kind holds it; the empty text is missing."""
    if value is None or value == "":
        return None
    if kind is Kind.NUMBER:
        return float(value)
    return str(value) if kind is Kind.TEXT else value
