"""What was measured of other shapes, to begin the search of a new one with."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from costmodel.interfaces import Example
from costmodel.model import XGBoostModel
from spaces.errors import InputError
from spaces.registry import space_for
from spaces.space import Space

if TYPE_CHECKING:
    from measure.database import Database

NEIGHBOURS = 4
ROWS = 384  # of each neighbour, which together train in about a second


def transferred(space: Space, database: Database) -> XGBoostModel | None:
    """A model of what ``database`` knows of the workloads nearest to this one on its target.

    None where that is too little to learn from. Schedules that today's spaces cannot make are
    passed over.
    """
    known: list[Example] = []
    for nearest in database.nearest(space.workload, space.target, NEIGHBOURS):
        try:
            version = space_for(nearest.workload, nearest.target).version
        except InputError:
            continue
        records = islice(database.records(nearest.workload, nearest.target), ROWS)
        known += [
            Example(record.workload, record.target, record.schedule, record.measurement.score)
            for record in records
            if record.space_version == version
        ]
    model = XGBoostModel()
    model.fit(known)
    return model if model.trained_on else None
