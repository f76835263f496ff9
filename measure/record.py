"""One row of the tuning database: a measurement and all that makes it comparable.

A record travels as JSON, into tables and between databases, and whatever is read is checked: a
schedule stays data, and a malformed record is refused with the field it fails in.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from measure.fields import Fields
from measure.measurement import ErrorKind, Measurement, Status
from spaces.canonical import canonical_json
from spaces.errors import InputError
from spaces.operators import workload_from_json
from spaces.schedule import Schedule
from spaces.target import Target, target_from_json
from spaces.workload import Workload

ROUNDS = ("search", "final")


@dataclass(frozen=True)
class Record:
    """One attempt: what was measured, on what, with which space, and how it ended.

    ``recorded_at`` is Unix time; ``id`` is the row in the database the record was read from.
    """

    workload: Workload
    target: Target
    space_version: str
    measurement: Measurement
    session: str = ""
    recorded_at: float = 0.0
    id: int | None = field(default=None, compare=False)

    @property
    def schedule(self) -> Schedule:
        """The schedule that was measured."""
        return self.measurement.schedule

    @cached_property
    def key(self) -> str:
        """Hexadecimal digest that names this attempt, wherever it is stored or sent to.

        The start time is part of it: measuring a schedule again is another attempt, whereas the
        same attempt delivered or imported twice is one record.
        """
        words = (
            self.workload.key,
            self.target.fingerprint,
            self.space_version,
            self.schedule.key,
            self.measurement.round,
            float(self.measurement.started_at) + 0.0,  # -0.0 is 0.0
        )
        return hashlib.sha256(canonical_json(words).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object; :func:`record_from_json` reads it back unchanged."""
        m = self.measurement
        return {
            "workload": self.workload.to_json(),
            "target": self.target.to_json(),
            "space_version": self.space_version,
            "schedule": m.schedule.to_json(),
            "status": str(m.status),
            "score": m.score,
            "samples": list(m.samples),
            "reference_samples": list(m.reference_samples),
            "clock": m.clock,
            "round": m.round,
            "error_kind": None if m.error_kind is None else str(m.error_kind),
            "error_text": m.error_text,
            "build_seconds": m.build_seconds,
            "run_seconds": m.run_seconds,
            "started_at": m.started_at,
            "info": m.info,
            "session": self.session,
            "recorded_at": self.recorded_at,
        }


def record_from_json(data: object, id: int | None = None) -> Record:
    """The record that :meth:`Record.to_json` described; :class:`InputError` if malformed."""
    fields = Fields(data)
    record = Record(
        workload=_workload(canonical_json(fields.description("workload"))),
        target=_target(canonical_json(fields.description("target"))),
        space_version=fields.text("space_version"),
        measurement=_measurement(fields),
        session=fields.prose("session"),
        recorded_at=fields.number("recorded_at"),
        id=id,
    )
    fields.finish()
    return record


def _measurement(fields: Fields) -> Measurement:
    status = Status(fields.choice("status", Status))
    score, kind = fields.optional("score", least=0.0), fields.take("error_kind")
    if status is Status.OK and score is None:
        raise InputError("a measurement with status 'ok' needs a score")
    if kind is not None and kind not in list(ErrorKind):
        raise InputError(f"error_kind={kind!r:.80} is unknown; allowed: {', '.join(ErrorKind)}")
    return Measurement(
        schedule=Schedule.from_json(fields.mapping("schedule")),
        status=status,
        score=score,
        samples=fields.numbers("samples"),
        reference_samples=fields.numbers("reference_samples"),
        clock=fields.text("clock"),
        round=fields.choice("round", ROUNDS),
        error_kind=None if kind is None else ErrorKind(kind),
        error_text=fields.prose("error_text"),
        build_seconds=fields.number("build_seconds"),
        run_seconds=fields.number("run_seconds"),
        started_at=fields.number("started_at"),
        info=fields.mapping("info"),
    )


@lru_cache(maxsize=256)
def _workload(text: str) -> Workload:
    return workload_from_json(json.loads(text))


@lru_cache(maxsize=64)
def _target(text: str) -> Target:
    return target_from_json(json.loads(text))
