"""Search by trying everything, for small spaces and for ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tilewright.scheduler.strategies.history import History
from tilewright.scheduler.strategies.search import Proposed
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


class ExhaustiveSearch:
    """Asks for every valid schedule once, in the space's order; a
    ``scheduler.strategies.search.Search``.
    """

    def __init__(self, space: Space) -> None:
        self._history = History(space, seed=0)
        self._rows = (row for block in space.blocks() for row in block)

    def ask(self, count: int) -> list[Proposed]:
        """Return at most ``count`` new schedules."""
        free = (row for row in self._rows if self._history.free(row))
        taken = self._history.take(islice(free, count))
        return [Proposed(schedule, "enumerated") for schedule in taken]

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes: only keeps these schedules from being asked for."""
        self._history.tell(results)
