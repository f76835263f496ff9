"""Search by drawing at random: the baseline for every other search."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.scheduler.strategies.history import History
from tilewright.scheduler.strategies.search import Proposed
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


class RandomSearch:
    """Asks for random valid schedules, none twice; a
    :class:`scheduler.strategies.search.Search`.
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        self._history = History(space, seed)

    def ask(self, count: int) -> list[Proposed]:
        """Return at most ``count`` new schedules."""
        drawn = self._history.sample(self._history.generator(), count)
        return [Proposed(schedule, "random") for schedule in self._history.take(drawn)]

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes: only keeps these schedules from being asked for."""
        self._history.tell(results)
