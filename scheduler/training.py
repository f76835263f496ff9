"""Cost models from a tuning database."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from costmodel.evaluation import Evaluation
from costmodel.evaluation import evaluate as evaluate_model
from costmodel.interfaces import Example
from costmodel.model import LEAST_ROWS, XGBoostModel
from spaces.errors import InputError
from spaces.files import check_place
from spaces.registry import space_for
from spaces.target import Target
from spaces.workload import Workload

if TYPE_CHECKING:
    from measure.database import Database


def examples(database: Database) -> list[Example]:
    """Every measurement that today's spaces can still make, to learn from.

    Those that the machine lost or a later run doubts say nothing.
    """

    @cache
    def versions(workload: Workload, target: Target) -> Collection[str]:
        try:
            return space_for(workload, target).versions
        except InputError:
            return ()

    return [
        Example(record.workload, record.target, record.schedule, record.measurement.score)
        for record in database.records()
        if record.template_version in versions(record.workload, record.target)
        and not (record.measurement.lost or record.doubted)
    ]


def train(database: Database, path: Path) -> XGBoostModel:
    """Train a model on all of ``database`` and write it to ``path``.

    Raises :class:`InputError` where there is too little to learn from, or ``path`` cannot be
    written.
    """
    check_place(path, "a model")
    known = examples(database)
    model = XGBoostModel()
    model.fit(known)
    if not model.trained_on:
        distinct = len({(e.workload.key, e.target.fingerprint, e.schedule.key) for e in known})
        raise InputError(f"{distinct} measured schedules; training needs at least {LEAST_ROWS}")
    model.save(path)
    return model


def evaluate(path: Path, database: Database) -> list[Evaluation]:
    """How well the model at ``path`` ranks what ``database`` measured.

    Raises :class:`InputError` if ``path`` is not a model of ours, or nothing can be ranked.
    """
    model = XGBoostModel.load(path)
    results = evaluate_model(model, examples(database))
    if not results:
        raise InputError("no workload of the database has two measured schedules to rank")
    return results
