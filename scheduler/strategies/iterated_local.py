"""Iterated local search (Lourenço, Martin and Stützle, Handbook of Metaheuristics, 2003)."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from tilewright.scheduler.strategies.walk import Visit, Walk

KICK = 3  # steps from the best local optimum to where the next descent begins


class IteratedLocalSearch(Walk):
    """Goes to the first neighbour that is faster, until none is; then it begins anew a kick away
    from the best so far."""

    def walk(self, generator: np.random.Generator) -> Iterator[Visit]:
        """Yield one descent after the other."""
        best = place = yield from self.begun(generator)
        while True:
            step: np.ndarray | None = place
            while step is not None:
                place = step
                step = yield from self._faster(place, generator)
            if self.seconds(place) <= self.seconds(best):
                best = place
            place = best
            for _ in range(KICK):
                place = self.neighbour(place, generator)
            yield place, "child"

    def _faster(
        self, place: np.ndarray, generator: np.random.Generator
    ) -> Generator[Visit, None, np.ndarray | None]:
        """Visit neighbours until one is faster; that one, or None."""
        for step in generator.permutation(self.neighbours(place)):
            yield step, "neighbour"
            if self.seconds(step) < self.seconds(place):
                return step
        return None
