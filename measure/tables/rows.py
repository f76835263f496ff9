"""Records and runs as rows of the tables, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tilewright.measure.records.fields import Fields, prose
from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.records.ranking import rank
from tilewright.measure.records.record import Record, record_of
from tilewright.measure.records.run import Run, run_from_json
from tilewright.measure.tables.described import described_target, described_workload
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target, target_from_json
from tilewright.spaces.validation.canonical import canonical_json

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

PLAIN = (
    *("template_version", "status", "score", "clock", "round", "error_kind", "error_text"),
    *("build_seconds", "run_seconds", "started_at", "recorded_at", "run", "doubted"),
)
JSON = ("schedule", "samples", "reference_samples", "info")
PLACE = ("host", "device", "toolchain")
PROPOSAL = {
    "origin": "origin",
    "place": "place_in_run",
    "mean": "predicted_mean",
    "spread": "predicted_spread",
}
_OTHER_KEYS = "its keys are not those of its contents"
COLUMNS = (*PLAIN, *JSON, *PLACE, *PROPOSAL.values())
"""The columns of a record's own, and so not those of its workload, target and ranking."""

ROW = ("key", "schedule_digest", "rank_score", *COLUMNS)
"""The columns of :func:`to_row`."""

_RUN_JSON = ("configuration", "versions")
_RUN_PLAIN = (
    *("key", "session", "command", "seed", "started_at", "heartbeat", "ended_at", "reason"),
    *("peak_gflops", "library_seconds"),
)
RUN_COLUMNS = (*_RUN_PLAIN, *_RUN_JSON)
"""The columns of a run's own."""


def as_read(record: Record, recorded_at: float) -> Record:
    """Return ``record`` as it comes back from a database that keeps it at this Unix time, whatever
    kinds of float or mapping it held.

    Raises :class:`InputError` for one that could not be read back.
    """
    own = record.own_json()
    own |= {"info": _as_read(own["info"], "info"), "recorded_at": recorded_at}
    return record_of(record.workload, record.target, own)


def to_row(record: Record) -> dict[str, Any]:
    """Return the columns of a record that was read, but for the id of its workload and target."""
    made, schedule, proposal = record.measurement, record.schedule.key, record.proposal
    right = made.ok and made.score is not None
    return {
        "key": record.key,
        "schedule_digest": _digest(schedule),
        "rank_score": rank(made) if right else None,
        "template_version": record.template_version,
        "status": str(made.status),
        "score": made.score,
        "clock": made.clock,
        "round": made.round,
        "error_kind": None if made.error_kind is None else str(made.error_kind),
        "error_text": made.error_text,
        "build_seconds": made.build_seconds,
        "run_seconds": made.run_seconds,
        "started_at": made.started_at,
        "recorded_at": record.recorded_at,
        "run": record.run,
        "doubted": record.doubted,
        "schedule": schedule,
        "samples": _numbers(made.samples),
        "reference_samples": _numbers(made.reference_samples),
        "info": canonical_json(made.info),
        "host": made.place.host,
        "device": made.place.device,
        "toolchain": made.place.toolchain,
        "origin": proposal and proposal.origin,
        "place_in_run": proposal and proposal.place,
        "predicted_mean": proposal and proposal.mean,
        "predicted_spread": proposal and proposal.spread,
    }


def from_row(row: Mapping[str, Any]) -> Record:
    """Return the record of a row joined with its workload and target; :class:`InputError` if
    malformed."""
    return own_from_row(row, *pair_from_row(row))


def pair_from_row(row: Mapping[str, Any]) -> tuple[Workload, Target]:
    """Return the workload and target that a row is joined with; :class:`InputError` if
    malformed."""
    described = Fields({name: _parsed(row, name) for name in ("workload", "target")})
    workload, target = described_workload(described), described_target(described)
    if (workload.key, target.fingerprint) != (row["workload_key"], row["fingerprint"]):
        raise InputError(_OTHER_KEYS)
    return workload, target


def own_from_row(row: Mapping[str, Any], workload: Workload, target: Target) -> Record:
    """Return the record of a row that is of this workload and target; :class:`InputError` if
    malformed."""
    data = {column: row[column] for column in PLAIN}
    data |= {column: _parsed(row, column) for column in JSON}
    data["place"] = {column: row[column] for column in PLACE}
    proposal = {name: row[column] for name, column in PROPOSAL.items()}
    data["proposal"] = None if proposal["origin"] is None else proposal
    record = record_of(workload, target, data, id=row["id"])
    if _digest(record.schedule.key) != row["schedule_digest"]:
        raise InputError(_OTHER_KEYS)
    return record


@lru_cache(maxsize=64)
def target_from_column(text: str) -> Target:
    """Return the target of a row of ``targets``; :class:`InputError` if malformed."""
    return target_from_json(Fields({"target": parse_json(text)}).description("target"))


def run_to_row(run: Run) -> dict[str, Any]:
    """Return the columns of a run, but for the id of its workload and target.

    Raises :class:`InputError` for a run that could not be read back.
    """
    data = run.to_json()
    data |= {column: prose(data[column]) for column in ("session", "command", "reason")}
    data = _as_read(data, "configuration and versions")
    run_from_json(data)
    row = {column: data[column] for column in _RUN_PLAIN}
    return row | {column: canonical_json(data[column]) for column in _RUN_JSON}


def run_from_row(row: Mapping[str, Any]) -> Run:
    """Return the run of a row joined with its workload and target; :class:`InputError` if
    malformed."""
    data = {column: row[column] for column in _RUN_PLAIN}
    data |= {column: _parsed(row, column) for column in (*_RUN_JSON, "workload", "target")}
    return run_from_json(data)


def _parsed(row: Mapping[str, Any], column: str) -> Any:
    try:
        return parse_json(row[column])
    except TypeError as error:
        raise InputError(f"a column has a value of the wrong type: {error}") from None


def _numbers(finite: Sequence[float]) -> str:
    """Return the JSON text of numbers that were read, as :func:`canonical_json` gives it."""
    return f"[{','.join(map(repr, finite))}]"


def _digest(schedule: str) -> str:
    """Compute the digest that rows of a schedule are found by."""
    return hashlib.sha256(schedule.encode()).hexdigest()


def _as_read(data: object, free: str) -> Any:
    """Return ``data`` as it comes back from a database, whatever kind of float or mapping it was.

    ``free`` names the part of it that callers fill as they like.
    """
    try:
        return parse_json(canonical_json(data))
    except TypeError as error:
        raise InputError(f"{free} must be JSON: {error}") from None
