"""Schedules of GPU operators with the times that earlier runs noted of them, and their workloads.

Results differ in how they list schedules: those explored, a case's fastest beside its rivals, what
nobody tuned, those that attention tried by template. Here all are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.attention.cases import CASES
from experiments.gpu_matmul.cases import all_cases
from experiments.operators import convolutions
from experiments.operators.summary import OURS, UNTUNED
from experiments.operators.untuned import entries
from experiments.recorded import recorded_schedule
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Problem:
    """A case of a family, by its name in results."""

    family: str
    name: str
    workload: Workload


@dataclass(frozen=True)
class Timed:
    """Seconds of schedules that were timed in the same way in one run, of the case called ``name``;
    if there is one, the ``untuned`` one is among them."""

    name: str
    seconds: Mapping[Schedule, float]
    untuned: Schedule | None = None


def problems() -> dict[str, Problem]:
    """Return, by name, the problems of ``experiments.operators.untuned``, convolutions followed by
    nothing or with channels first, products and attention."""
    found = [Problem(e.family, e.name, e.workload) for e in entries()]
    for shape in convolutions.LAYERS:
        for batch in (1, 32):
            plain = convolutions.Layer(*shape[:5], "plain", batch)
            first = convolutions.Layer(*shape, batch, "NCHW")
            found.append(Problem("convolutions, plain", plain.name, plain.workload))
            found.append(Problem("convolutions, NCHW", first.name, first.workload))
    found += [Problem("products", case.name, case.workload) for case in all_cases()]
    found += [Problem("attention", case.name, case.workload) for case in CASES]
    return {problem.name: problem for problem in found}


def timed(results: Mapping[str, Any]) -> Iterator[Timed]:
    """Read the times of a run: for each case those explored, and those in turns with rivals."""
    for name, row in _rows(results):
        if explored := dict(_explored(row)):
            yield Timed(name, explored)
        compared = dict(_compared(row))
        if compared:
            yield Timed(name, compared, list(compared)[-1] if UNTUNED in row else None)


def _rows(results: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows by the names of problems: an operator's name in a model follows the
    model's."""
    yield from results.get("cases", {}).items()
    for model, entry in results.get("models", {}).items():
        for name, row in entry["operators"].items():
            yield f"{model}: {name}", row


def _explored(row: Mapping[str, Any]) -> Iterator[tuple[Schedule, float]]:
    for each in row.get("explored", ()):
        if "schedule" in each and each.get("us"):
            yield recorded_schedule(each["schedule"]), 1e-6 * each["us"]
    for template, each in row.get("templates", {}).items():
        for tried in each["tried"]:
            schedule = recorded_schedule({"template": template, "decisions": tried["values"]})
            yield schedule, 1e-6 * tried["us"]


def _compared(row: Mapping[str, Any]) -> Iterator[tuple[Schedule, float]]:
    times = row.get("median_s", {})
    for key, who in (("schedule", OURS), (UNTUNED, UNTUNED)):
        if who in times and "template" in row.get(key, {}):
            yield recorded_schedule(row[key]), times[who]


def valid(schedule: Schedule, space: Space) -> Schedule | None:
    """Return the schedule if ``space`` still has it; to one of before some decision was made, what
    the nearest schedule has for it."""
    near = space.nearest(schedule, np.random.default_rng(0))
    if near is None or near.template != schedule.template:
        return None
    own = near.values
    same = all(own[name] == value for name, value in schedule.values.items() if name in own)
    return near if same else None
