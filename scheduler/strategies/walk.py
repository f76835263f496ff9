"""Base of searches that go step by step, each step by the outcomes before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache

import numpy as np

from tilewright.scheduler.strategies.history import History
from tilewright.scheduler.strategies.search import Proposed
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space

DRAWS = 8  # random schedules, at the fastest of which a walk begins
IDLE_STEPS = 512  # steps without a new schedule, after which the rest is drawn at random
REMEMBERED = 1024  # schedules whose neighbours are kept

Visit = tuple[np.ndarray, str]
"""The row that a step of a walk goes to, and its origin, see
``scheduler.strategies.search.Proposed``.
"""


class Walk(ABC):
    """A walk from schedule to schedule as a ``scheduler.strategies.search.Search``.

    At each ask it begins anew and goes by what is known by then: so it follows from the seed and
    the outcomes alone, in whatever order they came. What is not known yet is taken for a failure,
    and the walk goes on from where it was, as far as a batch needs new schedules.
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        self._space = space
        self._history = History(space, seed)
        self._neighbours = lru_cache(maxsize=REMEMBERED)(self._find_neighbours)

    @abstractmethod
    def walk(self, generator: np.random.Generator) -> Iterator[Visit]:
        """Return every step; before the next one is asked for, :meth:`seconds` tells its
        outcome."""

    def ask(self, count: int) -> list[Proposed]:
        """Return at most ``count`` new schedules."""
        proposed: list[Proposed] = []
        idle = 0
        for row, origin in self.walk(np.random.default_rng(self._history.seed)):
            if len(proposed) == count or idle == IDLE_STEPS:
                break
            idle += 1
            if self._history.free(row):
                proposed += self._taken([row], origin)
                idle = 0
        drawn = self._history.sample(self._history.generator(), count - len(proposed))
        return proposed + self._taken(drawn, "random")

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Take outcomes, in any order."""
        self._history.tell(results)

    def seconds(self, row: np.ndarray) -> float:
        """Return the outcome of a schedule; infinite where it failed or is not known yet."""
        return self._history.seconds(row)

    def begun(self, generator: np.random.Generator) -> Generator[Visit, None, np.ndarray]:
        """Visit ``DRAWS`` random schedules; the fastest of them."""
        drawn = self._space.sample(generator, DRAWS)
        yield from ((row, "random") for row in drawn)
        return min(drawn, key=self.seconds)

    def neighbour(self, row: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Return a random schedule one decision away; ``row`` itself if there is none."""
        near = self.neighbours(row)
        return near[generator.integers(len(near))] if len(near) else row

    def neighbours(self, row: np.ndarray) -> Population:
        """Return all schedules one decision away."""
        return self._neighbours(tuple(row.tolist()))

    def _find_neighbours(self, row: tuple[int, ...]) -> Population:
        generator = np.random.default_rng([self._history.seed, *row])
        return self._space.neighbours(np.array(row, dtype=np.int32), generator)

    def _taken(self, rows: Sequence[np.ndarray] | Population, origin: str) -> list[Proposed]:
        return [Proposed(schedule, origin) for schedule in self._history.take(rows)]
