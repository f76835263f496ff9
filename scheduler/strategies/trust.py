"""Weigh a search's prior against the model of its own outcomes.

Both are judged by their forecasts of measured schedules: the prior's before the measurement, the
model's by the members that had not learned from the schedule. A line brings the prior's scores to
the scale of the outcomes. A prior that says nothing of them gives a flat line, and then ranks
nothing. The rest is the mixture of the two that would have erred least (stacking; Wolpert, Neural
Networks 5, 1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.costmodel.interfaces import Predictor
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space

FLOOR = 0.1
"""Weight of an outcome beside its score: the fast ones are those to be told apart."""

LINE_EVIDENCE = 0.16
MIX_EVIDENCE = 0.3
"""Says how much outcomes have to say against the line of slope 1, and against the mixture by their
number, to count as much as these: sums of weighted squares of scores."""


@dataclass(frozen=True)
class Trust:
    """The weights of a mixture: ``share`` is the model's part of a prediction.

    The rest is the prior's score times ``slope`` plus ``offset``.
    """

    share: float = 0.0
    slope: float = 1.0
    offset: float = 0.0

    def prior(self, mean: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Convert the prior's scores and standard deviations to the scale of the outcomes."""
        return self.slope * mean + self.offset, self.slope * spread

    def mixed(self, prior: np.ndarray, model: np.ndarray) -> np.ndarray:
        """Return the mixture of two predictions, the prior's on the scale of the outcomes."""
        return (1.0 - self.share) * prior + self.share * model


class Forecasts:
    """The prior's forecasts of schedules, noted before their outcomes could be known."""

    def __init__(self, space: Space, prior: Predictor) -> None:
        self._space, self._prior = space, prior
        self._said: dict[bytes, float] = {}

    def note(self, schedules: Sequence[Schedule]) -> None:
        """Ask the prior about these, those that are no point of the space left out."""
        rows = self._space.rows([s for s in schedules if s in self._space])
        mean, _ = self._prior.predict(self._space, rows)
        for row, score in zip(rows, mean.tolist(), strict=True):
            self._said.setdefault(row.tobytes(), score)

    @property
    def best(self) -> float:
        """The best that was said of any, ``FLOOR`` at least."""
        return max([FLOOR, *self._said.values()])

    def of(self, rows: Population) -> np.ndarray:
        """Return the forecast of each of ``rows``, all of which were noted."""
        return np.array([self._said[row.tobytes()] for row in rows])


def trust(score: np.ndarray, prior: np.ndarray, unseen: np.ndarray, caution: float) -> Trust:
    """Fit the mixture to outcomes with these scores.

    ``prior`` is the prior's forecast of each. ``unseen`` is the forecast by the model's members
    that had not seen it: NaN if there is none, or empty. If these tell little, the model's share is
    ``n / (n + caution)`` of ``n`` outcomes.
    """
    weight = score + FLOOR
    centre, level = np.average(prior, weights=weight), np.average(score, weights=weight)
    slope = _slope(weight, prior - centre, score - level, LINE_EVIDENCE, 1.0)
    offset = level - slope * centre
    rows = np.flatnonzero(np.isfinite(unseen))
    here = slope * prior[rows] + offset
    usual = len(score) / (len(score) + caution)
    share = _slope(weight[rows], unseen[rows] - here, score[rows] - here, MIX_EVIDENCE, usual)
    return Trust(min(share, 1.0), slope, float(offset))


def _slope(
    weight: np.ndarray, x: np.ndarray, y: np.ndarray, evidence: float, usual: float
) -> float:
    """Return the slope, not negative, of the line through zero that leads from ``x`` to ``y`` with
    the least weighted squares, where so much ``evidence`` speaks for the ``usual`` one."""
    slope = (np.sum(weight * x * y) + evidence * usual) / (np.sum(weight * x * x) + evidence)
    return max(float(slope), 0.0)
