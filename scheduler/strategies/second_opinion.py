"""Two searches of one space: one that trusts what is known of others, and one that knows nothing.

What was measured of other shapes and devices saves most of a search, but where the fastest
schedules lie elsewhere it holds the search among those that are second best, and nothing measured
there says so: the models are right about all that they are asked about. So a search from nothing
gets a part of the evaluations. It learns from what it asked for alone: told all, or given the same
starters or the same prior, it stays where the first one is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scheduler.strategies.evolutionary import Evolution, EvolutionarySearch
from scheduler.strategies.search import Proposed, Search
from spaces.schedule import Schedule
from spaces.space import Space

LATEST = 16
"""Outcomes until the second search begins."""

TRIAL = 16
"""Schedules that it may ask for, to show what it can do."""

MOST = 48
"""The same if it comes close: as fast as the fastest of all, times ``CLOSE``."""

CLOSE = 0.8

SECOND = Evolution(guesses=4)
"""The settings of the second search: it is there to look elsewhere, so it draws more blindly."""


class SecondOpinion:
    """``first``, and for a while ``second`` in its place; a
    ``scheduler.strategies.search.Search``.

    ``second`` is told the outcomes of its own schedules alone, and at once, for nothing, if they
    are known already: so a resumed run finds it as it was. ``first`` learns from all.
    """

    def __init__(self, space: Space, first: EvolutionarySearch, second: Search) -> None:
        self._space, self._first, self._second = space, first, second
        self._own: dict[Schedule, float] = {}  # what ``second`` asked for; seconds, or infinite

    def ask(self, count: int) -> list[Proposed]:
        """At most ``count`` new schedules, those of ``second`` first."""
        asked: list[Proposed] = []
        while more := min(count - len(asked), self._share() - len(self._own)):
            batch = self._second.ask(more)
            if not batch:
                break
            asked += self._new(batch)
        return asked + self._first.ask(count - len(asked))

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes, in any order."""
        self._first.tell(results)
        self._tell_second([result for result in results if result[0] in self._own])

    def _share(self) -> int:
        """How many schedules ``second`` may ask for by now."""
        history = self._first.history
        if history.news < LATEST:
            return 0
        best = min(map(history.seconds, history.best(1)), default=math.inf)
        own = min(self._own.values(), default=math.inf)
        return MOST if CLOSE * own <= best < math.inf else max(TRIAL, len(self._own))

    def _new(self, batch: Sequence[Proposed]) -> list[Proposed]:
        """Those that nobody asked for before, from now on taken; ``second`` learns what is known
        of the others."""
        history, new = self._first.history, []
        for proposal in batch:
            row = self._space.row(proposal.schedule)
            self._own[proposal.schedule] = math.inf
            if history.free(row):
                history.take([row])
                new.append(proposal)
            elif history.knows(row):
                seconds = history.seconds(row)
                self._tell_second([(proposal.schedule, seconds if seconds < math.inf else None)])
        return new

    def _tell_second(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        self._second.tell(results)
        for schedule, latency in results:
            if latency is not None:
                self._own[schedule] = min(latency, self._own[schedule])
