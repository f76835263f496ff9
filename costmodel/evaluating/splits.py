"""Predict parts of the data by models that have not learned from them.

A part is all measurements of one workload, of one operator, or on one device. The model itself
predicts a part that it has not seen (``held out``). Its predictions for a part that it has seen
would flatter, so a new model with the same settings learns from other parts (``left out``). For a
lone workload, models learn from four fifths of the schedules at a time (``folds``). This shows how
well they fill in a space that they know, not how well they transfer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.costmodel.dataset import Group, SpaceFor
from tilewright.costmodel.evaluating.metrics import Ranking
from tilewright.costmodel.evaluating.parts import Split, part_of
from tilewright.costmodel.model import XGBoostModel
from tilewright.spaces.errors import InputError, shown

HELD_OUT, LEFT_OUT, FOLDS = "held out", "left out", "folds"
PROTOCOLS = {
    HELD_OUT: "ranked by the model itself, which has not learned from it",
    LEFT_OUT: "the model itself has learned from it, so another ranks it, which learned from the "
    "others alone",
    FOLDS: "the model itself has learned from it, and there are no others, so each fifth of its "
    "schedules is ranked by another that learned from the rest",
}
"""Says who ranks a part, by the name of each way, in words."""

ROW_FOLDS = 5
PART_FOLDS = 5  # models trained, at most, however many parts there are
MOST_ROWS = 4096  # schedules that each of them learns from at most: a report is to take no hours


@dataclass(frozen=True)
class HeldOut:
    """One part, its groups, and a ranking of each; ``protocol`` says who ranks (``PROTOCOLS``)."""

    part: str
    protocol: str
    groups: list[Group]
    rankings: list[Ranking]

    @property
    def label(self) -> str:
        """The part's name for people: a workload is named by its text."""
        workload = self.groups[0].space.workload
        return str(workload) if self.part == workload.key else self.part


def held_out(
    model: XGBoostModel, groups: Sequence[Group], split: Split, space_for: SpaceFor
) -> list[HeldOut]:
    """Return each part of ``groups`` as predicted by a model that has not learned from it.

    :class:`InputError` where a split by operator or device has but one part.
    """
    parts: dict[str, list[Group]] = {}
    for group in groups:
        parts.setdefault(_part(group, split), []).append(group)
    if len(parts) == 1 and split is not Split.WORKLOAD:
        raise InputError(
            f"a split by {split} needs schedules of two {split}s or more; these are all of "
            f"{shown(*parts)}"
        )
    seen = sorted(parts.keys() & _seen(model, groups, split))
    found = [
        HeldOut(part, HELD_OUT, members, [_ranking(model, group) for group in members])
        for part, members in parts.items()
        if part not in seen
    ]
    if seen and len(parts) == 1:
        found.append(_by_rows(model, seen[0], groups, space_for))
    elif seen:
        found += _left_out(model, parts, seen, space_for)
    return sorted(found, key=lambda each: each.label)


def _left_out(
    model: XGBoostModel,
    parts: Mapping[str, list[Group]],
    seen: Sequence[str],
    space_for: SpaceFor,
) -> Iterator[HeldOut]:
    """Yield the parts called ``seen``, some at a time, by models that learn from all the others."""
    for i in range(min(PART_FOLDS, len(seen))):
        away = seen[i::PART_FOLDS]
        others = [group for part, members in parts.items() if part not in away for group in members]
        other = _retrained(model, others, space_for)
        for part in away:
            rankings = [_ranking(other, group) for group in parts[part]]
            yield HeldOut(part, LEFT_OUT, parts[part], rankings)


def _part(group: Group, split: Split) -> str:
    return part_of(group.space.workload, group.space.target, split)


def _seen(model: XGBoostModel, groups: Sequence[Group], split: Split) -> set[str]:
    """Return the parts that ``model`` may have learned from.

    Of a workload the model keeps the text. Other texts may mean the same workload, and there are
    such as only this data can read: of an operator that this version does not have.
    """
    if split is not Split.DEVICE:
        texts = {text for text, _ in model.trained_on}
        here = (group.space.workload for group in groups)
        learned = [*model.workloads, *(workload for workload in here if str(workload) in texts)]
        return {w.key if split is Split.WORKLOAD else w.operator for w in learned}
    devices = {group.name[1]: _part(group, split) for group in groups}
    targets = {target for _, target in model.trained_on}
    if targets - devices.keys():  # a target that is not here may be of any device
        return set(devices.values())
    return {devices[target] for target in targets}


def _by_rows(
    model: XGBoostModel, part: str, groups: Sequence[Group], space_for: SpaceFor
) -> HeldOut:
    rankings = [_filled_in(model, group, space_for) for group in groups]
    return HeldOut(part, FOLDS, list(groups), rankings)


def _filled_in(model: XGBoostModel, group: Group, space_for: SpaceFor) -> Ranking:
    """Return a group, each fifth of which is predicted by what the others teach."""
    rows = len(group.latency)
    fold = np.random.default_rng(model.settings.seed).permutation(rows) % ROW_FOLDS
    predicted, spread = np.empty(rows), np.empty(rows)
    for i in range(ROW_FOLDS):
        known, asked = fold != i, fold == i
        other = _retrained(model, [group.subset(known)], space_for)
        predicted[asked], spread[asked] = other.predict(group.space, group.population[asked])
    return Ranking(group.score, predicted, spread)


def _ranking(model: XGBoostModel, group: Group) -> Ranking:
    return Ranking(group.score, *model.predict(group.space, group.population))


def _retrained(model: XGBoostModel, groups: Sequence[Group], space_for: SpaceFor) -> XGBoostModel:
    other = XGBoostModel(model.settings, space_for)
    other.fit_groups(_thinned(groups, model.settings.seed))
    return other


def _thinned(groups: Sequence[Group], seed: int) -> Sequence[Group]:
    """Return ``groups``, or as large a share of each as ``MOST_ROWS`` allow."""
    rows = sum(len(group.latency) for group in groups)
    if rows <= MOST_ROWS:
        return groups
    generator = np.random.default_rng(seed)
    share = MOST_ROWS / rows
    return [group.subset(generator.random(len(group.latency)) < share) for group in groups]
