"""Databases with records of made-up latencies, for tables to follow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

PRODUCT = "matmul n=24 k=16"


def a_schedule(size: int, target: Target, text: str = PRODUCT, axis: str = "m") -> Schedule:
    space = space_for(workload(text, **{axis: size}), target)
    return space.schedule(space.sample(np.random.default_rng(0), 16)[0])


def put(
    database: Database,
    seconds: Mapping[int, float],
    target: Target,
    text: str = PRODUCT,
    axis: str = "m",
) -> None:
    """Record a schedule of these latencies by size."""
    for size, score in seconds.items():
        work = workload(text, **{axis: size})
        put_schedule(database, work, a_schedule(size, target, text, axis), score, target)


def put_schedule(
    database: Database, work: Workload, schedule: Schedule, score: float, target: Target
) -> None:
    """Record a latency of a schedule."""
    version = space_for(work, target).version_of(schedule)
    measurement = Measurement(schedule, Status.OK, score, started_at=score)
    assert database.record(Record(work, target, version, measurement))
