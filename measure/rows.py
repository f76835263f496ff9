"""Records as rows of the ``measurements`` table, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from measure.fields import prose
from measure.jsonl import parse_json
from measure.measurement import Measurement
from measure.record import Record, record_from_json
from spaces.canonical import canonical_json
from spaces.errors import InputError
from spaces.schedule import Schedule

HANDICAP = 1.1
"""How far a schedule without a final measurement must be ahead, see ``measure.database``."""

PLAIN = (
    *("space_version", "status", "score", "clock", "round", "error_kind", "error_text"),
    *("build_seconds", "run_seconds", "started_at", "recorded_at", "session"),
)
JSON = ("schedule", "samples", "reference_samples", "info")


def digest(schedule: Schedule) -> str:
    """What the rows of a schedule are found by."""
    return hashlib.sha256(schedule.key.encode()).hexdigest()


def to_row(record: Record) -> dict[str, Any]:
    """The columns of a record, but for the ids of its workload and target.

    Raises :class:`InputError` for a record that could not be read back.
    """
    data = record.to_json()
    data |= {column: prose(data[column]) for column in ("error_text", "session")}
    try:
        data = parse_json(canonical_json(data))  # whatever kind of float or mapping it was
    except TypeError as error:
        raise InputError(f"a measurement's info must be JSON: {error}") from None
    record_from_json(data)
    row = {column: data[column] for column in PLAIN}
    row |= {column: canonical_json(data[column]) for column in JSON}
    row |= {"key": record.key, "schedule_digest": digest(record.schedule)}
    return row | {"rank_score": _rank_score(record.measurement)}


def from_row(row: Mapping[str, Any]) -> Record:
    """The record of a row joined with its workload and target; :class:`InputError` if malformed."""
    try:
        data = {column: row[column] for column in PLAIN}
        data |= {column: parse_json(row[column]) for column in (*JSON, "workload", "target")}
        record = record_from_json(data, id=row["id"])
    except TypeError as error:
        raise InputError(f"a column has a value of the wrong type: {error}") from None
    found = (record.workload.key, record.target.fingerprint, digest(record.schedule))
    if found != (row["workload_key"], row["fingerprint"], row["schedule_digest"]):
        raise InputError("its keys are not those of its contents")
    return record


def _rank_score(measurement: Measurement) -> float | None:
    if not measurement.ok or measurement.score is None:
        return None
    return measurement.score * (1.0 if measurement.round == "final" else HANDICAP)
