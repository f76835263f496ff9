"""What was measured of other shapes, to begin the search of a new one with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from costmodel.interfaces import CostModel, Example
from costmodel.model import XGBoostModel
from spaces.errors import InputError
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.space import Space

if TYPE_CHECKING:
    from measure.database import Database

NEIGHBOURS = 4
ROWS = 256  # of each neighbour, which together train in about half a second
LEADERS = 8  # of each neighbour


@dataclass(frozen=True)
class Transfer:
    """A model of the neighbours' measurements, and their best schedules as this space has them."""

    model: CostModel
    starters: list[Schedule]


@dataclass(frozen=True)
class Neighbours:
    """What was measured of the workloads nearest to one, and their best schedules as its space
    has them."""

    examples: list[Example]
    starters: list[Schedule]


def transfer(space: Space, database: Database) -> Transfer | None:
    """A model of what ``database`` knows of the workloads nearest to this one on its target.

    None where that is too little to learn from.
    """
    near = neighbours(space, database)
    model = XGBoostModel()
    model.fit(near.examples)
    return Transfer(model, near.starters) if model.trained_on else None


def neighbours(space: Space, database: Database) -> Neighbours:
    """What ``database`` knows of the workloads nearest to this one on its target.

    Schedules that today's spaces cannot make are passed over, and records that a run could not
    confirm.
    """
    known: list[Example] = []
    starters: list[Schedule] = []
    generator = np.random.default_rng(0)
    for nearest in database.nearest(space.workload, space.target, NEIGHBOURS):
        workload, target = nearest.workload, nearest.target
        try:
            versions = space_for(workload, target).versions
        except InputError:
            continue
        records = (
            record
            for record in database.records(workload, target)
            if record.template_version in versions
            and not (record.measurement.lost or record.doubted)
        )
        known += [
            Example(workload, target, record.schedule, record.measurement.score)
            for record in islice(records, ROWS)
        ]
        leaders = database.best_few(workload, target, LEADERS, versions)
        for record in (record for record in leaders if not record.doubted):
            if (schedule := space.nearest(record.schedule, generator)) is not None:
                starters.append(schedule)
    return Neighbours(known, starters)
