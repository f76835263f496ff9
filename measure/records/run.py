"""A run of the tuner, as the database keeps it, and what it says of each of its candidates."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.measure.records.fields import Fields
from tilewright.measure.records.measurement import new_job_id
from tilewright.measure.tables.described import described_target, described_workload
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

CHECKED = "resumed"
"""Origin of what earlier runs found best and each run measures again: no trial of its own."""


@dataclass(frozen=True)
class Proposal:
    """The origin of a candidate in its run.

    ``origin`` names the search's step that proposed it, such as ``random`` or ``evolved``.
    ``place`` counts the candidates of its run from 0. ``mean`` and ``spread`` are the cost model's
    prediction in the model's own unit, None where no model was asked.
    """

    origin: str
    place: int
    mean: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class Run:
    """One run of the tuner on one workload and target.

    ``key`` identifies it in every database, and records name it. ``session`` is common to the
    runs of one larger job, empty for a run by itself. ``command`` is what the user typed,
    ``configuration`` what the run was told by it (its budget in trials, seconds and patience, its
    model, ...), ``versions`` what it ran with (tilewright, python, ...; and ``process``, which one
    of its machine it was). ``heartbeat`` is when it
    was last known to live; ``ended_at`` and ``reason`` are None and empty until it ends. Times are
    Unix times. ``peak_gflops`` is what the machine was seen to reach on the workload's element
    type, ``library_seconds`` the latency of the library that it is compared with, None where
    unknown.
    """

    key: str
    workload: Workload
    target: Target
    session: str = ""
    command: str = ""
    seed: int = 0
    configuration: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    started_at: float = 0.0
    heartbeat: float = 0.0
    ended_at: float | None = None
    reason: str = ""
    peak_gflops: float | None = None
    library_seconds: float | None = None

    @property
    def is_note(self) -> bool:
        """True if the run measured no candidates, as :func:`note` makes one."""
        return self.ended_at == self.started_at

    def to_json(self) -> dict[str, Any]:
        """Return the run as a JSON object; :func:`run_from_json` reads it back unchanged."""
        return {
            "key": self.key,
            "workload": self.workload.to_json(),
            "target": self.target.to_json(),
            "session": self.session,
            "command": self.command,
            "seed": self.seed,
            "configuration": dict(self.configuration),
            "versions": dict(self.versions),
            "started_at": self.started_at,
            "heartbeat": self.heartbeat,
            "ended_at": self.ended_at,
            "reason": self.reason,
            "peak_gflops": self.peak_gflops,
            "library_seconds": self.library_seconds,
        }


def note(workload: Workload, target: Target, **fields: Any) -> Run:
    """Return a run that ends when it begins: it keeps what was found of a workload, such as a
    comparison, and has no candidates. ``fields`` are others of :class:`Run`."""
    now = time.time()
    times: dict[str, Any] = {"started_at": now, "heartbeat": now, "ended_at": now}
    return Run(new_job_id(), workload, target, **times, **fields)


def run_from_json(data: object) -> Run:
    """Return the run that :meth:`Run.to_json` described; :class:`InputError` if malformed."""
    fields = Fields(data)
    run = Run(
        key=fields.text("key"),
        workload=described_workload(fields),
        target=described_target(fields),
        session=fields.prose("session"),
        command=fields.prose("command"),
        seed=fields.integer("seed"),
        configuration=fields.description("configuration"),
        versions=fields.description("versions"),
        started_at=fields.number("started_at"),
        heartbeat=fields.number("heartbeat"),
        ended_at=fields.optional("ended_at"),
        reason=fields.prose("reason"),
        peak_gflops=fields.optional("peak_gflops", least=0.0),
        library_seconds=fields.optional("library_seconds", least=0.0),
    )
    fields.finish()
    return run
