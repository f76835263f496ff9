"""One cost model for tasks that are tuned together: what one measures helps the others' search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from costmodel.interfaces import Example, Predictor
from costmodel.model import LEAST_ROWS, XGBoostModel
from scheduler.defaults import default_search, learned_model
from scheduler.machine import roofline
from scheduler.strategies.evolutionary import EvolutionarySearch
from scheduler.strategies.search import Proposed, Search
from scheduler.tuning.transfer import Transfer, relatives
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.space import Population, Space
from spaces.target import Target
from spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from measure.database import Database

ROWS = 128  # rows taken of each workload; a dozen workloads train in half a second
GROWTH = 1.5  # times as many rows as it was trained on, before it is trained anew


class SharedModel:
    """Trees that learn from the measurements of all tasks, each in its own space.

    Until there are enough rows, the roofline answers. It is trained anew whenever its rows have
    grown by half, so that all its training takes little more than the last one.
    """

    def __init__(self, spaces: Sequence[Space]) -> None:
        known = {(space.workload, space.target): space for space in spaces}

        def lookup(workload: Workload, target: Target) -> Space:
            return known.get((workload, target)) or space_for(workload, target)

        self._rows: dict[tuple[Workload, Target], dict[Schedule, Example]] = {}
        self._model = XGBoostModel(space_for=lookup)
        self._roofline = roofline(spaces[0].target, lookup)
        self._due = LEAST_ROWS

    @property
    def trained(self) -> bool:
        """Whether it has learned from measurements."""
        return bool(self._model.trained_on)

    def learn(self, examples: Sequence[Example]) -> None:
        """Learn from more measurements, up to ``ROWS`` of each workload."""
        for example in examples:
            rows = self._rows.setdefault((example.workload, example.target), {})
            if len(rows) < ROWS:
                rows.setdefault(example.schedule, example)
        if sum(map(len, self._rows.values())) >= self._due:
            every = [example for rows in self._rows.values() for example in rows.values()]
            self._model.fit(every)
            self._due = int(GROWTH * len(every))

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """See :class:`costmodel.interfaces.Predictor`."""
        model: Predictor = self._model if self.trained else self._roofline
        return model.predict(space, population)


class SharingSearch:
    """A search whose outcomes teach a shared model too; a
    ``scheduler.strategies.search.Search``.
    """

    def __init__(self, search: Search, space: Space, shared: SharedModel) -> None:
        self._search, self._space, self._shared = search, space, shared

    def ask(self, count: int) -> list[Proposed]:
        """As the search asks."""
        return self._search.ask(count)

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes, to both."""
        self._search.tell(results)
        workload, target = self._space.workload, self._space.target
        self._shared.learn([Example(workload, target, s, latency) for s, latency in results])


def sharing_search(
    space: Space,
    database: Database,
    shared: SharedModel,
    seed: int,
    model: Predictor | None = None,
) -> Search:
    """Evolution under a model of the space's own results; until there are many, under ``model``
    if one is given, or the shared one. Where that has learned already, the search begins with what
    is good for the nearest workloads and devices, and has one that knows nothing for a second
    opinion."""
    near = relatives(space, database)
    shared.learn(near.examples)
    search: Search
    if model or shared.trained:
        search = default_search(space, seed, Transfer(model or shared, near.starters))
    else:
        search = EvolutionarySearch(space, learned_model(space), shared, seed)
    return SharingSearch(search, space, shared)
