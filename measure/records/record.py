"""One row of the tuning database: a measurement and all that makes it comparable.

A record travels as JSON, into tables and between databases, and whatever is read is checked: a
schedule stays data, and a malformed record is refused with the field it fails in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.measure.records.fields import Fields
from tilewright.measure.records.measurement import ErrorKind, Measurement, Place, Status
from tilewright.measure.records.ranking import FINAL, PRELIMINARY, SEARCH
from tilewright.measure.records.run import Proposal
from tilewright.measure.tables.described import described_target, described_workload
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.validation.canonical import canonical_json

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

ROUNDS = (SEARCH, PRELIMINARY, FINAL)
_STATUSES = {str(status): status for status in Status}
_KINDS = {str(kind): kind for kind in ErrorKind}


@dataclass(frozen=True)
class Record:
    """One attempt: what was measured, on what, by which template, and how it ended.

    ``template_version`` is that of the schedule's own template, see ``Space.version_of``.
    ``run`` is the key of the run it belongs to, empty for none, and ``proposal`` how that run
    came to it. ``doubted`` marks a score that a later run could not confirm: it ranks last.
    ``recorded_at`` is Unix time; ``id`` is the row in the database the record was read from.
    """

    workload: Workload
    target: Target
    template_version: str
    measurement: Measurement
    run: str = ""
    proposal: Proposal | None = None
    doubted: bool = False
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
            self.template_version,
            self.schedule.key,
            self.measurement.round,
            float(self.measurement.started_at) + 0.0,  # -0.0 is 0.0
        )
        return hashlib.sha256(canonical_json(words).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object; :func:`record_from_json` reads it back unchanged."""
        described = {"workload": self.workload.to_json(), "target": self.target.to_json()}
        return described | self.own_json()

    def own_json(self) -> dict[str, Any]:
        """Return the same without its workload and target, which many records share."""
        proposal = self.proposal
        return {
            "template_version": self.template_version,
            **measurement_to_json(self.measurement),
            "run": self.run,
            "proposal": None if proposal is None else vars(proposal).copy(),
            "doubted": self.doubted,
            "recorded_at": self.recorded_at,
        }


def record_from_json(data: object) -> Record:
    """Return the record that :meth:`Record.to_json` described; :class:`InputError` if malformed."""
    fields = Fields(data)
    return _record(described_workload(fields), described_target(fields), fields)


def record_of(workload: Workload, target: Target, own: object, id: int | None = None) -> Record:
    """Return the record of a workload and target that :meth:`Record.own_json` described;
    :class:`InputError` if malformed."""
    return _record(workload, target, Fields(own), id)


def _record(workload: Workload, target: Target, fields: Fields, id: int | None = None) -> Record:
    record = Record(
        workload=workload,
        target=target,
        template_version=fields.text("template_version"),
        measurement=_measurement(fields),
        run=fields.prose("run"),
        proposal=_proposal(fields.take("proposal")),
        doubted=fields.flag("doubted"),
        recorded_at=fields.number("recorded_at"),
        id=id,
    )
    fields.finish()
    return record


def measurement_to_json(m: Measurement) -> dict[str, Any]:
    """Return a measurement as a JSON object; :func:`measurement_from_json` reads it back
    unchanged."""
    place = m.place
    return {
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
        "place": {"host": place.host, "device": place.device, "toolchain": place.toolchain},
    }


def measurement_from_json(data: object) -> Measurement:
    """Return the measurement that :func:`measurement_to_json` described; :class:`InputError` if
    malformed."""
    fields = Fields(data)
    measurement = _measurement(fields)
    fields.finish()
    return measurement


def _measurement(fields: Fields) -> Measurement:
    status = _STATUSES[fields.choice("status", _STATUSES)]
    score, kind = fields.optional("score", least=0.0), fields.take("error_kind")
    if status is Status.OK and score is None:
        raise InputError("a measurement with status 'ok' needs a score")
    if kind is not None and not (isinstance(kind, str) and kind in _KINDS):
        raise InputError(f"error_kind={kind!r:.80} is unknown; allowed: {', '.join(ErrorKind)}")
    return Measurement(
        schedule=Schedule.from_json(fields.mapping("schedule")),
        status=status,
        score=score,
        samples=fields.numbers("samples", least=0.0),
        reference_samples=fields.numbers("reference_samples", least=0.0),
        clock=fields.text("clock"),
        round=fields.choice("round", ROUNDS),
        error_kind=None if kind is None else _KINDS[kind],
        error_text=fields.prose("error_text"),
        build_seconds=fields.number("build_seconds", least=0.0),
        run_seconds=fields.number("run_seconds", least=0.0),
        started_at=fields.number("started_at"),
        info=fields.mapping("info"),
        place=_place(fields.take("place")),
    )


def _place(data: object) -> Place:
    fields = Fields(data)
    names = ("host", "device", "toolchain")
    place = Place(**{name: fields.prose(name) for name in names})
    fields.finish()
    return place


def _proposal(data: object) -> Proposal | None:
    if data is None:
        return None
    fields = Fields(data)
    proposal = Proposal(
        origin=fields.text("origin"),
        place=fields.integer("place"),
        mean=fields.optional("mean"),
        spread=fields.optional("spread"),
    )
    fields.finish()
    return proposal
