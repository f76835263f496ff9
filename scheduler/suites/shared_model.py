"""Knowledge shared by tasks that are tuned together.

A cost model learns from the measurements of all, and each task tries the fastest schedules of the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.interfaces import Example, Predictor
from tilewright.costmodel.model import LEAST_ROWS, XGBoostModel
from tilewright.scheduler.defaults import default_search, learned_model
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.strategies.evolutionary import EvolutionarySearch
from tilewright.scheduler.strategies.search import Proposed, Search
from tilewright.scheduler.tuning.transfer import Transfer, relatives
from tilewright.spaces.algebra.sequences import in_turn
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database

ROWS = 128  # rows taken of each workload; a dozen workloads train in half a second
GROWTH = 1.5  # times as many rows as it was trained on, before it is trained anew
LEADERS = 4  # schedules of each workload that the others try
TRIED_SHARE = 1 / 4  # share of a batch that such schedules may be


class SharedModel:
    """Trees that learn from the measurements of all tasks, each in its own space.

    All tasks are on one target; what is known of other devices is learned beside it. Labels are of
    one workload and target each, and the trees see the device's features, so that no latency is
    compared with that of another device. Until there are enough rows, the roofline answers. It is
    trained anew whenever its rows have grown by half, so that all its training takes little more
    than the last one.
    """

    def __init__(self, spaces: Sequence[Space]) -> None:
        known = {(space.workload, space.target): space for space in spaces}

        def lookup(workload: Workload, target: Target) -> Space:
            return known.get((workload, target)) or space_for(workload, target)

        self._rows: dict[tuple[Workload, Target], dict[Schedule, Example]] = {}
        self._fastest: dict[tuple[Workload, Target], dict[Schedule, float]] = {}
        self._model = XGBoostModel(space_for=lookup)
        self._roofline = roofline(spaces[0].target, lookup)
        self._due = LEAST_ROWS

    @property
    def trained(self) -> bool:
        """True once the model has learned from measurements."""
        return bool(self._model.trained_on)

    def learn(self, examples: Sequence[Example]) -> None:
        """Learn from more measurements, up to ``ROWS`` of each workload."""
        for example in examples:
            self._note(example)
            rows = self._rows.setdefault((example.workload, example.target), {})
            if len(rows) < ROWS:
                rows.setdefault(example.schedule, example)
        if sum(map(len, self._rows.values())) >= self._due:
            every = [example for rows in self._rows.values() for example in rows.values()]
            self._model.fit(every)
            self._due = int(GROWTH * len(every))

    def leaders(self, space: Space) -> list[Schedule]:
        """Return the fastest of every other workload, and of this one on other devices; then the
        second of each, and so on."""
        own = (space.workload, space.target)
        others = [known for pair, known in self._fastest.items() if pair != own]
        ranked = [sorted(known, key=known.__getitem__) for known in others]
        return in_turn(ranked)

    def _note(self, example: Example) -> None:
        """Keep the fastest of each workload."""
        if example.latency is not None:
            known = self._fastest.setdefault((example.workload, example.target), {})
            known[example.schedule] = example.latency
            fastest = nsmallest(LEADERS, known, key=known.__getitem__)
            self._fastest[example.workload, example.target] = {s: known[s] for s in fastest}

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """See :class:`costmodel.interfaces.Predictor`."""
        model: Predictor = self._model if self.trained else self._roofline
        return model.predict(space, population)


class SharingSearch:
    """A search whose outcomes teach a shared model too, and that tries what is fastest for other
    workloads, or the nearest to it here, as soon as that is known; a
    ``scheduler.strategies.search.Search``.
    """

    def __init__(self, search: Search, space: Space, shared: SharedModel) -> None:
        self._search, self._space, self._shared = search, space, shared
        self._considered: set[Schedule] = set()  # leaders elsewhere
        self._taken: set[Schedule] = set()  # asked for or told

    def ask(self, count: int) -> list[Proposed]:
        """Propose schedules that other tasks found good, then the search's own."""
        starters = self._starters(int(TRIED_SHARE * count))
        proposed = starters
        while len(proposed) == len(starters) < count and (
            asked := self._search.ask(count - len(starters))
        ):
            proposed = starters + [p for p in asked if p.schedule not in self._taken]
        self._taken.update(p.schedule for p in proposed)
        return proposed

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Pass outcomes to both."""
        self._taken.update(schedule for schedule, _ in results)
        self._search.tell(results)
        workload, target = self._space.workload, self._space.target
        self._shared.learn([Example(workload, target, s, latency) for s, latency in results])

    def _starters(self, most: int) -> list[Proposed]:
        """Leaders elsewhere that are new here."""
        found: list[Proposed] = []
        for leader in self._shared.leaders(self._space):
            if len(found) == most:
                break
            if leader not in self._considered:
                self._considered.add(leader)
                generator = np.random.default_rng(len(self._considered))
                here = self._space.nearest(leader, generator)
                if here is not None and here not in self._taken:
                    self._taken.add(here)
                    found.append(Proposed(here, "starter"))
        return found


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
        known = Transfer(model or shared, near.starters, near.same_shape)
        search = default_search(space, seed, known)
    else:
        search = EvolutionarySearch(space, learned_model(space), shared, seed)
    return SharingSearch(search, space, shared)
