"""A genetic algorithm (Holland, 1975): parents cross over, children mutate, the best survive."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.scheduler.strategies.walk import Visit, Walk
from tilewright.spaces.space import NEAR_ATTEMPTS, NO_PREFERENCE, Population

POPULATION = 20
MUTATIONS = 1.0  # mean number of decisions of a child that are drawn anew


class GeneticSearch(Walk):
    """Generations of ``POPULATION`` children, whose parents win tournaments of two; of parents and
    children the fastest live on."""

    def walk(self, generator: np.random.Generator) -> Iterator[Visit]:
        """Yield the first generation at random, then children."""
        population = self._space.sample(generator, POPULATION)
        yield from ((row, "random") for row in population)
        while True:
            children = self._children(population, generator)
            yield from ((row, "child") for row in children)
            both = np.unique(np.concatenate([population, children]), axis=0)
            population = both[np.argsort(self._times(both), kind="stable")[:POPULATION]]

    def _children(self, parents: Population, generator: np.random.Generator) -> Population:
        times = self._times(parents)
        rivals = generator.integers(0, len(parents), (2, 2, POPULATION))
        first, second = parents[np.where(times[rivals[0]] <= times[rivals[1]], *rivals)]
        wishes = self._space.mixed(first, second, generator)
        mutated = generator.random(wishes.shape) < MUTATIONS / (self._space.width - 1)
        mutated[:, 0] = False  # the template
        wishes = np.where(mutated, NO_PREFERENCE, wishes)
        return self._space.complete(wishes, generator, attempts=NEAR_ATTEMPTS)

    def _times(self, population: Population) -> np.ndarray:
        return np.array([self.seconds(row) for row in population])
