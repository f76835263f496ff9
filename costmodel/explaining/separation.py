"""Find the decisions that separate the fast schedules of a workload from the slow ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.costmodel.dataset import Group
from tilewright.spaces.schedule import Value

FASTEST = 0.1


@dataclass(frozen=True)
class Separation:
    """One decision of one template, over its ``rows`` schedules that ran.

    ``explained`` is the share of the variance of log latency that lies between the decision's
    values and not within them, without what chance alone would give. Of the fastest tenth,
    ``share_of_fastest`` chose ``value``; of all, ``share_of_all``. The median of schedules that
    chose otherwise takes ``slowdown`` times as long as that of those that chose it.
    """

    decision: str
    rows: int
    explained: float
    value: Value
    share_of_fastest: float
    share_of_all: float
    slowdown: float


def separations(group: Group) -> list[Separation]:
    """Rank all decisions with several values by how well they separate fast from slow.

    ``template`` counts as a decision, over all schedules. A search tries promising decisions
    together, so one may separate because of another.
    """
    ran = np.flatnonzero(np.isfinite(group.latency))
    population, latency = group.population[ran], group.latency[ran]
    templates = np.array(list(group.space.templates))[population[:, 0]]
    found = [_separation("template", templates, latency)]
    for template in np.unique(templates).tolist():
        own = templates == template
        found += [
            _separation(f"{template}.{name}", values, latency[own])
            for name, values in group.space.columns(template, population[own]).items()
        ]
    return sorted((each for each in found if each), key=lambda each: -each.explained)


def _separation(decision: str, chosen: np.ndarray, latency: np.ndarray) -> Separation | None:
    """Return None where there is nothing to tell apart."""
    names, value = np.unique(chosen, return_inverse=True)
    explained = epsilon_squared(value, np.log(latency))
    if explained is None:
        return None
    fastest = np.argsort(latency, kind="stable")[: max(1, round(FASTEST * len(latency)))]
    common = int(np.bincount(value[fastest]).argmax())
    has = value == common
    return Separation(
        decision=decision,
        rows=len(latency),
        explained=explained,
        value=names[common].item(),
        share_of_fastest=float(has[fastest].mean()),
        share_of_all=float(has.mean()),
        slowdown=float(np.median(latency[~has]) / np.median(latency[has])),
    )


def epsilon_squared(group: np.ndarray, y: np.ndarray) -> float | None:
    """Return the share of the variance of ``y`` between groups of equal whole numbers, corrected
    for chance (Kelley, "An unbiased correlation ratio measure", PNAS 21(9), 1935), at least 0; None
    with fewer than two groups, without a row to spare, or where ``y`` does not vary."""
    counts = np.bincount(group)
    kinds = np.count_nonzero(counts)
    total = float(((y - y.mean()) ** 2).sum())
    if kinds < 2 or len(y) <= kinds or total <= 0:
        return None
    means = np.bincount(group, weights=y) / np.maximum(counts, 1)
    within = float(((y - means[group]) ** 2).sum())
    noise = within / (len(y) - kinds)
    return max(0.0, (total - within - (kinds - 1) * noise) / total)
