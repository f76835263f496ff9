"""Begin a search with measurements of other shapes, operators and devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.dataset import group_examples
from tilewright.costmodel.interfaces import Example, Predictor
from tilewright.costmodel.predictors.ensemble import ensemble
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
    """A model trained on relatives, and their best schedules converted to this space.

    The best of each relative come first. ``same_shape`` tells that one relative computes the same
    workload, on another device.
    """

    model: Predictor
    starters: list[Schedule]
    same_shape: bool = False


@dataclass(frozen=True)
class Relatives:
    """Measurements of the nearest workloads and devices, and their best schedules in this space.

    The best of each relative come first; ``same_shape`` is as in :class:`Transfer`.
    """

    examples: list[Example]
    starters: list[Schedule]
    same_shape: bool


def transfer(space: Space, database: Database) -> Transfer | None:
    """Learn from the relatives in ``database``: one model for each device, averaged.

    None if there is too little to learn from.
    """
    near = relatives(space, database)
    groups, _ = group_examples(near.examples, space_for)
    model = ensemble(groups)
    return Transfer(model, near.starters, near.same_shape) if model else None


def relatives(space: Space, database: Database) -> Relatives:
    """Find the workloads and targets in ``database`` that are nearest to those of ``space``.

    Targets are of the same kind (GPUs, or CPUs), and schedules belong to templates that the space
    has. Doubted records are left out. Each relative gives its best schedules, and the ones that it
    tried first.
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
    """Return the records that a space can learn from, the oldest first."""
    return (
        record
        for record in database.records(workload, target)
        if record.template_version in space.versions
        and not (record.measurement.lost or record.doubted)
    )
