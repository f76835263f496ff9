"""Search by drawing at random: the yardstick for every other search."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.history import History
from spaces.schedule import Schedule
from spaces.space import Space


class RandomSearch:
    """Asks for random valid schedules, none twice; a :class:`scheduler.search.Search`."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        self._history = History(space, seed)

    def ask(self, count: int) -> list[Schedule]:
        """At most ``count`` new schedules."""
        return self._history.take(self._history.sample(self._history.generator(), count))

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes: only keeps these schedules from being asked for."""
        self._history.tell(results)
