"""Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983)."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, inf, log

import numpy as np

from tilewright.scheduler.strategies.walk import Visit, Walk

HOTTEST, COLDEST = 0.1, 0.002  # at 0.1 a step that costs 10 % of the speed is taken one in three
COOLING = 0.96  # factor of the temperature at each step


class AnnealingSearch(Walk):
    """Goes to a random neighbour if that is faster, or with a probability that falls with what is
    lost and with the temperature; once cold, it begins anew elsewhere."""

    def walk(self, generator: np.random.Generator) -> Iterator[Visit]:
        """Yield one cooling after the other."""
        while True:
            place, temperature = (yield from self.begun(generator)), HOTTEST
            while temperature > COLDEST:
                step = self.neighbour(place, generator)
                yield step, "neighbour"
                if generator.random() < self._chance(place, step, temperature):
                    place = step
                temperature *= COOLING

    def _chance(self, place: np.ndarray, step: np.ndarray, temperature: float) -> float:
        """Return the probability of taking a step."""
        here, there = self.seconds(place), self.seconds(step)
        if there == inf:
            return 0.0
        return 1.0 if there <= here else exp(log(here / there) / temperature)
