"""Find records that cannot be true, whoever made them.

The score of a record that comes from elsewhere cuts the trials of every later run short. It must
therefore be a record that a runner can have written.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.timing import statistics_by_clock
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


def why_implausible(record: Record) -> str | None:
    """Say why a record's score cannot be true, in words that fit any number of records; None if it
    can.
    """
    measurement = record.measurement
    if measurement.status not in (Status.OK, Status.SLOW):
        return None if measurement.score is None else "failures that have a score"
    if not measurement.samples:
        return "scores without samples"
    if measurement.score is None or not _is_statistic(measurement, measurement.score):
        return "scores that are not the statistic of their samples"
    if measurement.score < _least_seconds(record.target, record.workload):
        return "scores that their hardware cannot reach"
    return None


@lru_cache(maxsize=1024)
def _least_seconds(target: Target, workload: Workload) -> float:
    return target.least_seconds(workload)


def _is_statistic(measurement: Measurement, score: float) -> bool:
    statistics = statistics_by_clock(measurement.clock)
    return any(math.isclose(score, of(measurement.samples), rel_tol=1e-9) for of in statistics)
