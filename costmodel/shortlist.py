"""Draft, then verify: the cheap roofline picks the schedules that the learned model ranks."""

from __future__ import annotations

import numpy as np

from tilewright.costmodel.interfaces import Predictor
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.spaces.space import Population, Space

CANDIDATES = 4096
"""Candidates that a learned model ranks, of 100,000: a fraction of the time of ranking all."""


def shortlist(
    space: Space, population: Population, draft: AnalyticModel, count: int = CANDIDATES
) -> np.ndarray:
    """Return the positions of the ``count`` schedules of least estimated latency, in rising order.

    Those that the estimate knows nothing of come last.
    """
    if len(population) <= count:
        return np.arange(len(population))
    latency = np.nan_to_num(draft.latency(space, population), nan=np.inf)
    return np.sort(np.argpartition(latency, count - 1)[:count])


def shortlisted(
    space: Space,
    population: Population,
    draft: AnalyticModel,
    model: Predictor,
    count: int = CANDIDATES,
) -> tuple[Population, np.ndarray]:
    """Return the rows of the :func:`shortlist`, the best by ``model`` first, and their scores."""
    rows = population[shortlist(space, population, draft, count)]
    score, _ = model.predict(space, rows)
    order = np.argsort(-score, kind="stable")
    return rows[order], score[order]
