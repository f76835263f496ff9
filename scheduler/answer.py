"""Answers of :func:`scheduler.query.query`: the best schedule known for a workload on a target."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tilewright.measure.busy import why_busy
from tilewright.measure.estimates import Estimate, latency
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.records.record import Record


class Provenance(StrEnum):
    """The way a schedule was found."""

    MEASURED = "measured"
    TRANSFERRED = "transferred"
    PREDICTED = "predicted"


@dataclass(frozen=True)
class Answer:
    """The best schedule known for a workload on a target, from ``space``.

    For a measured schedule that is the part of the space that templates on record span.
    ``latency`` is in seconds. For a measured schedule it is the score, else an estimate. A
    transferred estimate is the score on the nearest shape, scaled by the roofline. It is None if
    the template reports too little for an estimate. ``trials`` counts the schedules measured of
    this workload and target. ``record`` is the record that a measured or transferred schedule is
    taken from. If nothing is measured, ``measured_for`` names the targets with measurements that
    are this machine with another number of threads.
    """

    space: Space
    schedule: Schedule
    latency: float | None
    provenance: Provenance
    trials: int
    record: Record | None = None
    measured_for: tuple[str, ...] = ()

    def __repr__(self) -> str:
        time = "unknown" if self.latency is None else f"{self.latency * 1e6:.4g} us"
        how = f"{self.provenance}, {time}, {self.trials} trials"
        lines = (f"<Answer {self.workload}", self.target.summary, str(self.schedule), how)
        return brief("\n  ".join(lines) + ">", width=500)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def workload(self) -> Workload:
        """The workload that the schedule computes."""
        return self.space.workload

    @property
    def target(self) -> Target:
        """The target that the schedule runs on."""
        return self.space.target

    @property
    def numerics(self) -> Numerics:
        """The promise about errors that the kernel keeps."""
        return self.space.numerics_of(self.schedule)

    @property
    def doubted(self) -> bool:
        """True if a later run measured another latency; such an answer is the last resort."""
        return self.record is not None and self.record.doubted

    @property
    def estimate(self) -> Estimate | None:
        """The latency of a measured schedule with its interval; None of others."""
        if self.record is None or self.provenance is not Provenance.MEASURED:
            return None
        return latency(self.record.measurement)

    @property
    def note(self) -> str:
        """A remark on all kernels of this template; may be empty."""
        return self.space.templates[self.schedule.template].note

    @property
    def busy(self) -> str:
        """The signs that the machine was busy during the measurement; empty if there are none."""
        return "" if self.record is None else why_busy(self.record.measurement)

    @property
    def gflops(self) -> float | None:
        """10^9 floating-point operations a second, the epilogue's not counted."""
        return None if self.latency is None else self.workload.flops / self.latency / 1e9

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {
            "workload": self.workload.to_json(),
            "target": self.target.to_json(),
            "schedule": self.schedule.to_json(),
            "note": self.note,
            "latency_s": self.latency,
            "latency_interval_s": None if self.estimate is None else self.estimate.ends,
            "gflops": self.gflops,
            "busy": self.busy or None,
            "provenance": str(self.provenance),
            "numerics": str(self.numerics),
            "trials": self.trials,
            "doubted": self.doubted,
            "measured_for": list(self.measured_for),
            "transferred_from": self._source.workload.to_json() if self._source else None,
            "transferred_from_target": self._source.target.to_json() if self._source else None,
        }

    @property
    def _source(self) -> Record | None:
        return self.record if self.provenance is Provenance.TRANSFERRED else None
