"""The cost model that needs no data: the roofline, at most rescaled by what was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path

import numpy as np

from tilewright.costmodel.dataset import SpaceFor, group_examples
from tilewright.costmodel.interfaces import Example
from tilewright.costmodel.roofs.peaks import MeasuredPeaks, peaks_for
from tilewright.costmodel.roofs.roofline import ideal_seconds, roofline_seconds
from tilewright.costmodel.sizes import evenness
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Population, Space

FORMAT = "tilewright-analytic-model"
UNKNOWN = 0.5  # uncertainty where a template reports no quantities, and the most a score can be


class AnalyticModel:
    """Predicts by the roofline, without data. The score is the workload's roofline over the
    estimated latency.

    Without an estimate the schedule's sizes decide (``costmodel.sizes``). ``fit`` keeps the
    ranking: it learns one factor between estimated and measured seconds, from the best fifth of
    each workload (those are the ones whose latency people ask for), and the error of the estimates.
    """

    def __init__(
        self, measured: MeasuredPeaks | None = None, space_for: SpaceFor = space_for
    ) -> None:
        self._measured = measured
        self._space_for = space_for
        self._scale = 1.0
        self._spread = 0.5  # standard deviation of log(measured / estimated)

    def fit(self, examples: Sequence[Example]) -> None:
        """Learn the factor to measured seconds; failures are passed over."""
        groups, _ = group_examples(examples, self._space_for)
        best, residuals = [], []
        for group in groups:
            ran = np.flatnonzero(np.isfinite(group.latency))
            estimate = self._estimate(group.space, group.population[ran])
            residual = np.log(group.latency[ran] / estimate)
            order = np.argsort(group.latency[ran])
            best.append(residual[order[: -(-len(ran) // 5)]])
            residuals.append(residual)
        known = _finite(best)
        self._scale = float(np.exp(np.median(known))) if len(known) else 1.0
        spread = _finite(residuals)
        self._spread = max(float(np.std(spread)), 0.05) if len(spread) > 1 else 0.5

    def latency(self, space: Space, population: Population) -> np.ndarray:
        """Estimated latency of each schedule, in seconds; NaN where nothing is known."""
        return self._scale * self._estimate(space, population)

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """Scores and their standard deviations, see :class:`costmodel.interfaces.CostModel`."""
        peaks = peaks_for(space.workload, space.target, self._measured)
        score = ideal_seconds(space.workload, peaks) / self._estimate(space, population)
        spread = np.nan_to_num(score * min(self._spread, 1.0), nan=UNKNOWN)
        unknown = np.isnan(score)
        if unknown.any():
            score[unknown] = UNKNOWN * evenness(space, population[unknown])
        return score, spread

    def save(self, path: Path) -> None:
        """Write the two learned numbers as JSON."""
        data = {"format": FORMAT, "scale": self._scale, "spread": self._spread}
        path.write_text(json.dumps(data) + "\n")

    @classmethod
    def load(cls, path: Path, space_for: SpaceFor = space_for) -> AnalyticModel:
        """Return the model that :meth:`save` wrote; :class:`InputError` for anything else."""
        try:
            data = json.loads(path.read_text())
            if data["format"] != FORMAT:
                raise ValueError
            model = cls(space_for=space_for)
            model._scale, model._spread = float(data["scale"]), float(data["spread"])
            if not (0 < model._scale < inf and 0 < model._spread < inf):
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise InputError(f"{path} is not a Tilewright model") from None
        return model

    def _estimate(self, space: Space, population: Population) -> np.ndarray:
        peaks = peaks_for(space.workload, space.target, self._measured)
        return roofline_seconds(space.workload, space.quantities(population), peaks)


def _finite(parts: list[np.ndarray]) -> np.ndarray:
    values = np.concatenate(parts) if parts else np.zeros(0)
    return values[np.isfinite(values)]
