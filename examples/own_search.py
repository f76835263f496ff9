"""Tune with a search of your own: a climber that tries neighbours of the fastest schedule so far.

A search answers ``ask`` with new schedules and is told outcomes by ``tell``. It knows nothing of
compilers, clocks and databases. A contract test to inherit is in
``tilewright.scheduler.testing.search``.
"""

import os
from collections.abc import Sequence

from tilewright import Database, Schedule, detect_target, workload
from tilewright.scheduler.strategies.history import History
from tilewright.scheduler.strategies.search import Proposed
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.space import Space

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "48"))


class Climber:
    """Asks for schedules one decision away from the fastest, else for random ones."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space = space
        self.history = History(space, seed)  # what was asked for and told, nothing twice

    def ask(self, count: int) -> list[Proposed]:
        """Return at most ``count`` new schedules."""
        generator = self.history.generator()
        asked: list[Proposed] = []
        for fastest in self.history.best(3):
            near = self.space.neighbours(fastest, generator)
            near = near[self.history.fresh(near)][: count - len(asked)]
            asked += [Proposed(schedule, "neighbour") for schedule in self.history.take(near)]
        drawn = self.history.sample(generator, count - len(asked))
        return asked + [Proposed(schedule, "random") for schedule in self.history.take(drawn)]

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes: seconds, None for a failure."""
        self.history.tell(results)


product, target = workload("matmul m=64 n=96 k=64"), detect_target("cpu")
with Database("tuning.db") as database:
    tuner = Tuner(product, target, database, make_search=Climber)
    result = tuner.run(trials=TRIALS, seconds=60)
for trial, _, latency in result.history:
    print(f"trial {trial:3}: {latency * 1e6:.2f} us")
