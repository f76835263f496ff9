"""The winners of an earlier run as records, so that a new run begins with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from experiments.gpu_matmul.cases import Case
from measure.records.measurement import Measurement, Status
from measure.records.record import Record
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.target import Target


def known_records(path: Path, cases: list[Case], target: Target) -> Iterator[Record]:
    """Of each of ``cases`` that the ``results.json`` at ``path`` has a winner of which this
    space still holds: its schedule and its median time there."""
    rows = json.loads(path.read_text())["cases"]
    for case in cases:
        row = rows.get(case.name, {})
        if "schedule" not in row or "tilewright" not in row["median_s"]:
            continue
        schedule = Schedule.from_json(row["schedule"])
        space = space_for(case.workload, target)
        if schedule in space:
            seconds = row["median_s"]["tilewright"]
            measured = Measurement(
                schedule, Status.OK, seconds, (seconds,), clock="device", round="final"
            )
            yield Record(case.workload, target, space.version_of(schedule), measured)
