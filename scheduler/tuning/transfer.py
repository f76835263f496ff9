"""What was measured of other shapes, operators and devices, to begin a new search with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.dataset import group_examples
from tilewright.costmodel.interfaces import Example, Predictor
from tilewright.costmodel.predictors.council import council
from tilewright.spaces.algebra.sequences import in_turn
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record

RELATIVES = 8
ROWS = 1024  # rows taken of all relatives together: half a second of training
LEADERS = 8  # leaders taken of each relative


@dataclass(frozen=True)
class Transfer:
    """What the relatives' measurements predict, and their best schedules as this space has them,
    the best of each first; ``same_shape``: whether one of them computes the same, on another
    device."""

    model: Predictor
    starters: list[Schedule]
    same_shape: bool = False


@dataclass(frozen=True)
class Relatives:
    """What was measured of the workloads and devices nearest to those of a space, and their best
    schedules as the space has them, the best of each first; ``same_shape`` as in :class:`Transfer`.
    """

    examples: list[Example]
    starters: list[Schedule]
    same_shape: bool


def transfer(space: Space, database: Database) -> Transfer | None:
    """What ``database`` knows of other shapes, operators and devices, with a model of each device.

    None where that is too little to learn from.
    """
    near = relatives(space, database)
    groups, _ = group_examples(near.examples, space_for)
    model = council(groups)
    return Transfer(model, near.starters, near.same_shape) if model else None


def relatives(space: Space, database: Database) -> Relatives:
    """What ``database`` knows of the workloads and targets nearest to those of ``space``.

    Targets are of the same kind (GPUs, or CPUs), schedules of the templates that the space has
    today. Records that a run could not confirm are passed over. Of each relative the best
    schedules count, and the ones that it tried first.
    """
    near = database.related(space.workload, space.target, space.versions, RELATIVES)
    examples: list[Example] = []
    starters: list[list[Schedule | None]] = []
    generator = np.random.default_rng(0)
    for workload, target in ((record.workload, record.target) for record in near):
        leaders = [
            record
            for record in database.best_few(workload, target, LEADERS, space.versions)
            if not record.doubted
        ]
        first = islice(_sound(space, database, workload, target), ROWS // len(near))
        examples += [
            Example(workload, target, record.schedule, record.measurement.score)
            for record in {record.key: record for record in (*leaders, *first)}.values()
        ]
        starters.append([space.nearest(record.schedule, generator) for record in leaders])
    same_shape = any(record.workload == space.workload for record in near)
    return Relatives(examples, in_turn(starters), same_shape)


def _sound(
    space: Space, database: Database, workload: Workload, target: Target
) -> Iterator[Record]:
    """The records that a space can learn from, the oldest first."""
    return (
        record
        for record in database.records(workload, target)
        if record.template_version in space.versions
        and not (record.measurement.lost or record.doubted)
    )
