"""A pool of rows that a search chooses from, each with its prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.scheduler.strategies.history import distinct
from tilewright.scheduler.strategies.search import Proposed
from tilewright.spaces.space import Population, Space

ORIGINS = ("leader", "starter", "immigrant", "child", "neighbour")
"""Says where rows are from, see :class:`scheduler.strategies.search.Proposed`; leaders never
are."""


@dataclass(frozen=True)
class Pool:
    """Rows to choose from. One entry for each: the ``score`` that ranks it, the ``mean`` and the
    ``spread`` of its predicted quality, and its place in ``ORIGINS``."""

    rows: Population
    score: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    origin: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Sequence[int] | np.ndarray) -> Pool:
        """Return the rows at these places, in this order."""
        i = np.asarray(places, dtype=int)
        return Pool(self.rows[i], self.score[i], self.mean[i], self.spread[i], self.origin[i])

    def distinct(self) -> Pool:
        """Return the distinct rows, where they first stand."""
        return self.at(distinct(self.rows))

    def best(self, count: int) -> Pool:
        """Return the ``count`` best, best first."""
        return self.at(np.argsort(-self.score, kind="stable")[:count])

    def within(self, margin: float, count: int) -> Pool:
        """Return the rows whose score is at most ``margin`` below the ``count``-th best."""
        if not 0 < count < len(self):
            return self
        least = np.partition(self.score, -count)[-count]
        return self.at(np.flatnonzero(self.score >= least - margin))

    def proposed(self, space: Space) -> list[Proposed]:
        """Return the pool's schedules with their origins and forecasts, as a search asks for
        them."""
        rest = zip(self.origin, self.mean.tolist(), self.spread.tolist(), strict=True)
        return [
            Proposed(space.schedule(row), ORIGINS[origin], mean, spread)
            for row, (origin, mean, spread) in zip(self.rows, rest, strict=True)
        ]


def joined(pools: Sequence[Pool]) -> Pool:
    """Return the distinct rows of pools, where they first stand."""
    columns = zip(*((p.rows, p.score, p.mean, p.spread, p.origin) for p in pools), strict=True)
    return Pool(*(np.concatenate(column) for column in columns)).distinct()
