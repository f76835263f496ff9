"""A search that nothing it is told can change."""

from __future__ import annotations

import numpy as np

from tilewright.scheduler.strategies.search import Proposed
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


class Listed:
    """Asks for the same schedules in the same order, but for those that were known before."""

    def __init__(self, space: Space, seed: int, count: int = 1000) -> None:
        rows = space.sample(np.random.default_rng(seed), count)
        self._left = dict.fromkeys(map(space.schedule, rows))

    def ask(self, count: int) -> list[Proposed]:
        """The next ones."""
        asked = list(self._left)[:count]
        for schedule in asked:
            del self._left[schedule]
        return [Proposed(schedule, "listed") for schedule in asked]

    def tell(self, results: list[tuple[Schedule, float | None]]) -> None:
        """These are not asked for any more."""
        for schedule, _ in results:
            self._left.pop(schedule, None)
