"""Evaluate a model on workloads, operators or devices that it has not learned from.

``costmodel.evaluating.splits`` chooses the model that predicts each part. Figures are means over
the groups of a part, then over parts; intervals follow from the number of parts. A figure that the
data cannot support is left out, with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tilewright.costmodel.dataset import Group, SpaceFor
from tilewright.costmodel.evaluating.bootstrap import LEAST_GROUPS, interval
from tilewright.costmodel.evaluating.metrics import METRICS, Metric, Ranking, pairwise_accuracy
from tilewright.costmodel.evaluating.parts import Split
from tilewright.costmodel.evaluating.splits import FOLDS, MOST_ROWS, PROTOCOLS, HeldOut, held_out
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.spaces.registry import space_for

CHANCE = 0.5  # pairwise accuracy of guesses


@dataclass(frozen=True)
class Part:
    """Ranking quality on one part of the data, over so many groups (of a workload and a target
    each) and ``rows`` schedules. ``figures`` are by the names of
    ``costmodel.evaluating.metrics.METRICS``.
    """

    name: str
    protocol: str
    groups: int
    rows: int
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Figure:
    """The mean of ``parts`` parts, and where that of all such parts lies with a probability of
    95 %; None where that cannot be said."""

    mean: float
    interval: tuple[float, float] | None
    parts: int


@dataclass(frozen=True)
class Evaluation:
    """Ranking quality on all parts of a split.

    ``roofline`` is the pairwise accuracy of the roofline, which needs no data, and ``gain`` the
    evaluated model's lead over it. ``left_out`` lists the figures that the data cannot support, and
    ``verdict`` says whether the model is useful: a sentence each.
    """

    split: Split
    parts: list[Part]
    figures: Mapping[str, Figure]
    roofline: Figure
    gain: Figure
    left_out: list[str]
    verdict: str

    @property
    def protocols(self) -> dict[str, str]:
        """The evaluation protocols of its parts, each with its meaning in words."""
        known = {part.protocol for part in self.parts}
        return {name: meaning for name, meaning in PROTOCOLS.items() if name in known}

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation as a JSON object."""
        meaning = {metric.name: metric.meaning for metric in METRICS}
        return asdict(self) | {"meaning": meaning, "protocols": self.protocols}


def evaluate(
    model: XGBoostModel,
    groups: Sequence[Group],
    split: Split = Split.WORKLOAD,
    space_for: SpaceFor = space_for,
) -> Evaluation | None:
    """Evaluate the ranking by ``model`` of each part of ``groups`` that it has not learned from.

    None if no two schedules of a group differ in their scores. Raises :class:`InputError` if a
    split by operator or device has but one part.
    """
    ranked = [group for group in groups if len(np.unique(group.score)) > 1]
    if not ranked:
        return None
    held = held_out(model, ranked, split, space_for)
    parts = [_part(each) for each in held]
    figures = {
        metric.name: _figure([p.figures[metric.name] for p in parts if metric.name in p.figures])
        for metric in METRICS
        if any(metric.name in p.figures for p in parts)
    }
    known = AnalyticModel(space_for=space_for)
    by_roofline = [_roofline_accuracy(known, each.groups) for each in held]
    gains = [p.figures["pairwise"] - r for p, r in zip(parts, by_roofline, strict=True)]
    roofline, gain = _figure(by_roofline), _figure(gains)
    return Evaluation(
        split=split,
        parts=parts,
        figures=figures,
        roofline=roofline,
        gain=gain,
        left_out=_left_out(held, split),
        verdict=_verdict(figures["pairwise"], roofline, gain, split, held[0].protocol == FOLDS),
    )


def _part(held: HeldOut) -> Part:
    figures = {}
    for metric in METRICS:
        values = [metric.of(ranking) for ranking in held.rankings if _supports(ranking, metric)]
        known = [value for value in values if not np.isnan(value)]
        if known:
            figures[metric.name] = float(np.mean(known))
    rows = sum(len(ranking.score) for ranking in held.rankings)
    return Part(held.label, held.protocol, len(held.groups), rows, figures)


def _supports(ranking: Ranking, metric: Metric) -> bool:
    return len(ranking.score) >= metric.least_rows


def _roofline_accuracy(model: AnalyticModel, groups: Sequence[Group]) -> float:
    return float(
        np.mean(
            [pairwise_accuracy(model.predict(g.space, g.population)[0], g.score) for g in groups]
        )
    )


def _figure(values: Sequence[float]) -> Figure:
    return Figure(float(np.mean(values)), interval(np.array(values)), len(values))


def _left_out(held: Sequence[HeldOut], split: Split) -> list[str]:
    rows = [len(ranking.score) for part in held for ranking in part.rankings]
    said = []
    for metric in METRICS:
        short = sum(count < metric.least_rows for count in rows)
        if short:
            whole = "left out" if short == len(rows) else f"of {len(rows) - short} of {len(rows)}"
            said.append(
                f"{metric.name} is {whole}: it takes {metric.least_rows} schedules of a workload "
                "on a target"
            )
    if len(held) < LEAST_GROUPS:
        said.append(
            f"intervals are left out: they take {LEAST_GROUPS} {split}s, these are {len(held)}"
        )
    if sum(rows) > MOST_ROWS:
        said.append(
            f"a model that was trained anew has learned from about {MOST_ROWS} of the schedules, "
            "drawn at random"
        )
    return said


def _verdict(pairwise: Figure, roofline: Figure, gain: Figure, split: Split, lone: bool) -> str:
    """Return a sentence on whether the model is useful.

    ``lone`` marks the only workload there is, which the model has therefore seen.
    """
    unseen = f"{split}s that it has not seen"
    if lone:
        unseen = f"schedules that it has not seen, of the one {split} there is,"
    found = (
        f"on {unseen} it orders {_percent(pairwise.mean)} of pairs rightly, "
        f"and the roofline, which needs no data, {_percent(roofline.mean)}"
    )
    if pairwise.interval is None or gain.interval is None:
        return (
            f"Not known to be of use: {found}; too few {split}s to tell that from luck: tune "
            f"{LEAST_GROUPS} or more, and train again."
        )
    low, high = gain.interval
    if pairwise.interval[0] <= CHANCE:
        return f"Not of use: {found}; guesses may do as well: tune more, and train again."
    if low > 0:
        return f"Of use: {found}; the difference is no luck (95 % interval {_points(low, high)})."
    if high < 0:
        return f"Not of use: {found}, which is better (95 % interval {_points(low, high)})."
    return (
        f"Not shown to be of use: {found}; the difference may be luck "
        f"(95 % interval {_points(low, high)})."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(low: float, high: float) -> str:
    return f"{100 * low:+.1f} to {100 * high:+.1f} points"
