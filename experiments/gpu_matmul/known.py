"""The winners of an earlier run as records, so that a new run begins with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from experiments.gpu_matmul.cases import Case
from experiments.recorded import recorded_schedule
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target

EARLIER: Mapping[str, Value] = {"evict_first": False}
"""Values of decisions that recorded schedules did not have yet: of the same kernels."""


def known_records(path: Path, cases: list[Case], target: Target) -> Iterator[Record]:
    """Read the winners of ``cases`` from the ``results.json`` at ``path``, with their median times.
    Winners that the space does not hold any more are left out."""
    rows = json.loads(path.read_text())["cases"]
    for case in cases:
        row = rows.get(case.name, {})
        if "schedule" not in row or "tilewright" not in row["median_s"]:
            continue
        space = space_for(case.workload, target)
        schedule = completed(space, recorded_schedule(row["schedule"]))
        if schedule in space:
            seconds = row["median_s"]["tilewright"]
            measured = Measurement(
                schedule, Status.OK, seconds, (seconds,), clock="device", round="final"
            )
            yield Record(case.workload, target, space.version_of(schedule), measured)


def completed(space: Space, schedule: Schedule) -> Schedule:
    """Return a schedule with the decisions of its template that it did not have yet."""
    template = space.templates.get(schedule.template)
    names = [decision.name for decision in template.decisions] if template else []
    later = {name: EARLIER[name] for name in names if name in EARLIER}
    return Schedule(schedule.template, tuple({**later, **schedule.values}.items()))
