"""How good a model is on workloads it has not learned from.

A model's file says what it was trained on. A workload of the database that it has not seen is
predicted as it is (``held out``). For one that it has seen, its own predictions would be
flattering, so a new model with the same settings is trained on all other workloads
(``left out``); where there is no other, on four fifths of the workload's own schedules at a time
(``folds``), which says how well it fills in a space it knows, not how well it transfers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.dataset import Group, SpaceFor, group_examples
from costmodel.interfaces import Example
from costmodel.metrics import pairwise_accuracy, recall, top
from costmodel.model import XGBoostModel
from spaces.registry import space_for

FOLDS = 5


@dataclass(frozen=True)
class Evaluation:
    """Ranking quality on one workload and target. ``protocol`` is ``held out``, ``left out`` or
    ``folds``; the others are the metrics of ``costmodel.metrics`` over ``rows`` schedules."""

    workload: str
    target: str
    protocol: str
    rows: int
    pairwise: float
    top1: float
    top5: float
    recall1: float


def evaluate(
    model: XGBoostModel, examples: Sequence[Example], space_for: SpaceFor = space_for
) -> list[Evaluation]:
    """One evaluation for each workload and target of ``examples`` with two schedules or more of
    which one ran, in the order of their names."""
    groups, _ = group_examples(examples, space_for)
    results = []
    for group in groups:
        if len(group.latency) < 2 or not group.score.any():
            continue
        others = [other for other in groups if other is not group]
        if group.name not in model.trained_on:
            protocol, predicted = "held out", _predict(model, group)
        elif others:
            protocol, predicted = "left out", _predict(_retrained(model, others, space_for), group)
        else:
            protocol, predicted = "folds", _by_folds(model, group, space_for)
        results.append(_evaluation(group, protocol, predicted))
    return results


def _evaluation(group: Group, protocol: str, predicted: np.ndarray) -> Evaluation:
    workload, target = group.name
    score = group.score
    return Evaluation(
        workload=workload,
        target=target,
        protocol=protocol,
        rows=len(score),
        pairwise=pairwise_accuracy(predicted, score),
        top1=top(predicted, score, 1),
        top5=top(predicted, score, 5),
        recall1=recall(predicted, score, 0.01),
    )


def _predict(model: XGBoostModel, group: Group) -> np.ndarray:
    return model.predict(group.space, group.population)[0]


def _retrained(model: XGBoostModel, groups: Sequence[Group], space_for: SpaceFor) -> XGBoostModel:
    other = XGBoostModel(model.settings, space_for)
    other.fit_groups(groups)
    return other


def _by_folds(model: XGBoostModel, group: Group, space_for: SpaceFor) -> np.ndarray:
    fold = np.random.default_rng(model.settings.seed).permutation(len(group.latency)) % FOLDS
    predicted = np.empty(len(fold))
    for i in range(FOLDS):
        known, asked = group.subset(fold != i), group.subset(fold == i)
        predicted[fold == i] = _predict(_retrained(model, [known], space_for), asked)
    return predicted
