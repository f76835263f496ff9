"""Train and evaluate cost models on a tuning database."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.costmodel.dataset import group_examples
from tilewright.costmodel.evaluating.evaluation import Evaluation
from tilewright.costmodel.evaluating.evaluation import evaluate as evaluate_model
from tilewright.costmodel.evaluating.parts import Split, device_of
from tilewright.costmodel.interfaces import Example
from tilewright.costmodel.model import LEAST_ROWS, XGBoostModel
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target
from tilewright.spaces.validation.files import check_place
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database


@dataclass(frozen=True)
class Training:
    """The data that a model was trained on, and its quality on data held out.

    ``schedules`` counts each once, ``failures`` those that failed. ``skipped`` schedules are no
    longer in their spaces. ``quality`` is None if nothing could be held out.
    """

    schedules: int
    failures: int
    skipped: int
    workloads: int
    operators: list[str]
    devices: list[str]
    quality: Evaluation | None

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        quality = None if self.quality is None else self.quality.to_json()
        return asdict(self) | {"quality": quality}


def examples(
    database: Database, workload: Workload | None = None, target: Target | None = None
) -> list[Example]:
    """Return all measurements of schedules that today's spaces have, of one workload or target or
    of all.

    Lost and doubted measurements are left out.
    """

    @cache
    def versions(workload: Workload, target: Target) -> Collection[str]:
        try:
            return space_for(workload, target).versions
        except InputError:
            return ()

    return [
        Example(record.workload, record.target, record.schedule, record.measurement.score)
        for record in database.records(workload, target)
        if record.template_version in versions(record.workload, record.target)
        and not (record.measurement.lost or record.doubted)
    ]


def train(database: Database, path: Path) -> Training:
    """Train a model on all of ``database``, write it to ``path``, and return a report.

    Example::

        report = train(Database("tuning.db"), Path("model.json"))

    Raises :class:`InputError` if there is too little to learn from, or ``path`` cannot be written.
    """
    check_place(path, "a model")
    groups, skipped = group_examples(examples(database), space_for)
    model = XGBoostModel()
    model.fit_groups(groups)
    if not model.trained_on:
        known = sum(len(group.latency) for group in groups)
        raise InputError(f"{known} measured schedules; training needs at least {LEAST_ROWS}")
    model.save(path)
    return Training(
        schedules=sum(len(group.latency) for group in groups),
        failures=sum(int(np.isnan(group.latency).sum()) for group in groups),
        skipped=skipped,
        workloads=len({group.space.workload for group in groups}),
        operators=sorted({group.space.workload.operator for group in groups}),
        devices=sorted({device_of(group.space.target) for group in groups}),
        quality=evaluate_model(model, groups),
    )


def evaluate(path: Path, database: Database, split: Split = Split.WORKLOAD) -> Evaluation:
    """Measure how well the model at ``path`` ranks the schedules in ``database``.

    See ``costmodel.evaluating.evaluation``. Raises :class:`InputError` if ``path`` is not a model
    of ours, nothing can be ranked, or a split by operator or device has but one part.
    """
    model = XGBoostModel.load(path)
    groups, _ = group_examples(examples(database), space_for)
    found = evaluate_model(model, groups, split)
    if found is None:
        raise InputError("no workload of the database has two measured schedules to rank")
    return found
