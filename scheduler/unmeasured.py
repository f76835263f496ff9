"""Schedules for workloads that nobody has measured on a target: transferred and predicted ones.

A *transferred* schedule comes from the nearest sibling of the target, or from the nearest shape. A
*predicted* one is the best of many random schedules by the roofline, or by a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.interfaces import CostModel
from tilewright.costmodel.shortlist import shortlisted
from tilewright.scheduler.answer import Answer, Provenance
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.predictions import PREDICTED, least_estimate, ranked
from tilewright.scheduler.strategies.history import distinct
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record

DRAFTED = 1 << 15  # candidates shortlisted, for a learned model to rank the most promising
NEIGHBOURS = 8
LESS_SUITED = 1.5
"""Says how many times farther from the best estimate a schedule may be here than where it was
measured: the nearest shape may be one that another template serves best."""


def untuned(space: Space, database: Database, model: CostModel | None = None) -> list[Schedule]:
    """Return the answers for a workload without measurements: transferred if possible, then
    predicted."""
    trials = database.trials(space.workload, space.target)
    first = next(unmeasured(space, database, trials, model))
    if first.provenance is Provenance.PREDICTED:
        return [first.schedule]
    second = next(predicted(space, trials, model))
    return list(dict.fromkeys([first.schedule, second.schedule]))


def unmeasured(
    space: Space, database: Database, trials: int, model: CostModel | None
) -> Iterator[Answer]:
    """Yield transferred answers, then predicted ones."""
    yield from _transferred(space, database, trials)
    yield from predicted(space, trials, model)


def _transferred(space: Space, database: Database, trials: int) -> Iterator[Answer]:
    workload, target = space.workload, space.target
    # of other versions of templates
    older = database.best_few(workload, target, NEIGHBOURS) if trials else []
    siblings = database.of_siblings(workload, target, space.versions)
    for record in chain(older, siblings, database.nearest(workload, target, NEIGHBOURS)):
        schedule = space.nearest(record.schedule, np.random.default_rng(0))
        there = _space_of(record, space)
        score = record.measurement.score
        if schedule is not None and record.schedule in there and score is not None:
            longer = _estimate(space, schedule) / _estimate(there, record.schedule)
            if longer > LESS_SUITED * least_estimate(space) / least_estimate(there):
                continue
            expected = _known_or_none(score * longer)
            yield Answer(space, schedule, expected, Provenance.TRANSFERRED, trials, record)


def _space_of(record: Record, here: Space) -> Space:
    """Return the space of the record's workload and target; ``here`` if it is that one (it is slow
    to make)."""
    if (record.workload, record.target) == (here.workload, here.target):
        return here
    return space_for(record.workload, record.target)


def _estimate(space: Space, schedule: Schedule) -> float:
    return float(roofline(space.target).latency(space, space.rows([schedule]))[0])


def predicted(space: Space, trials: int, model: CostModel | None) -> Iterator[Answer]:
    """Yield the schedules that the roofline, or ``model``, ranks first."""
    found = ranked(space) if model is None else _ranked_by(model, space)
    if not found:
        raise InputError(f"no valid schedule was found for {space.workload}")
    for schedule, expected in found:
        yield Answer(space, schedule, _known_or_none(expected), Provenance.PREDICTED, trials)


def _ranked_by(model: CostModel, space: Space) -> list[tuple[Schedule, float]]:
    """Return the schedules that ``model`` ranks first, with the roofline's estimates."""
    drawn = space.sample(np.random.default_rng(0), DRAFTED)
    population, _ = shortlisted(space, drawn, roofline(space.target), model)
    rows = distinct(population)[:PREDICTED]
    schedules = [space.schedule(population[row]) for row in rows]
    return [(schedule, _estimate(space, schedule)) for schedule in schedules]


def _known_or_none(latency: float) -> float | None:
    return None if np.isnan(latency) else float(latency)
