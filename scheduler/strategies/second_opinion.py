"""Two searches of one space: one that trusts what is known of others, and one that knows nothing.

What was measured of other shapes and devices saves most of a search, but where the fastest
schedules lie elsewhere it holds the search among those that are second best, and nothing measured
there says so: the models are right about all that they are asked about. So a search from nothing
is given a trial. Where its schedules are faster than the prior says, the prior does not know this
space, and it goes on. It learns from what it asked for alone: told all, or given the same
starters or the same prior, it stays where the first one is. So it is kept away from there. What
the prior says is useful all the same, as one feature among those that its model learns from: where
it misleads as a whole, it may still be right about some decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from tilewright.scheduler.strategies.evolutionary import Evolution, EvolutionarySearch
from tilewright.scheduler.strategies.history import LEADERS
from tilewright.scheduler.strategies.search import Proposed, Search
from tilewright.scheduler.strategies.trust import FLOOR
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

LATEST = 16
"""Outcomes until the second search begins."""

TRIAL = 8
"""Schedules that it may ask for, to show how well the first one's prior knows them."""

MOST = 48
"""The same if the prior misleads: if those are faster than it said, by more than ``MISLED``."""

MISLED = 0.05
"""Part of the best speed, on the mean of the trial, where the fast ones count most."""

SECOND = Evolution(guesses=4)
"""The settings of the second search: it is there to look elsewhere, so it draws more blindly."""


class SecondOpinion:
    """``first``, and for a while a second search in its place; a
    ``scheduler.strategies.search.Search``.

    ``begin`` makes the second one. It is given the fastest of the first ``LATEST`` schedules that
    were told, none if all of them failed, and is to keep away from that. It is told the outcomes of
    its own schedules alone, and at once, for nothing, if they are known already: so a resumed run
    finds it as it was. ``first`` learns from all.
    """

    def __init__(
        self,
        space: Space,
        first: EvolutionarySearch,
        begin: Callable[[Sequence[Schedule]], Search],
    ) -> None:
        self._space, self._first, self._begin = space, first, begin
        self._opening: dict[Schedule, float] = {}  # the first that were told; seconds, or infinite
        self._own: dict[Schedule, float] = {}  # the same of what the second asked for

    def ask(self, count: int) -> list[Proposed]:
        """At most ``count`` new schedules, those of the second first."""
        asked: list[Proposed] = []
        while (more := min(count - len(asked), self._share() - len(self._own))) > 0:
            batch = self._second.ask(more)
            if not batch:
                break
            asked += self._new(batch)
        return asked + self._first.ask(count - len(asked))

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes, in any order."""
        self._first.tell(results)
        for schedule, latency in results:
            if len(self._opening) < LATEST and schedule in self._space:
                self._opening.setdefault(schedule, math.inf if latency is None else latency)
        if own := [result for result in results if result[0] in self._own]:
            self._tell_second(own)

    @cached_property
    def _second(self) -> Search:
        fastest = min(self._opening, key=self._opening.__getitem__)
        return self._begin([fastest] if self._opening[fastest] < math.inf else [])

    def _share(self) -> int:
        """How many schedules the second may ask for by now."""
        if self._first.history.news < LATEST:
            return 0
        return MOST if self._surprise() > MISLED else TRIAL

    def _surprise(self) -> float:
        """By how much of the best speed the trial is faster than ``first`` expected by its prior,
        on the mean, weighed as in ``trust``; 0.0 until all of it is known.

        What the second finds later is no part of the best, so that this does not depend on it.
        """
        history = self._first.history
        own = self._space.rows([*self._own])
        trial = own[:TRIAL]
        if len(trial) < TRIAL or not all(map(history.knows, trial)):
            return 0.0
        later = {row.tobytes() for row in own[TRIAL:]}
        others = (row for row in history.best(LEADERS) if row.tobytes() not in later)
        best = min(map(history.seconds, others), default=math.inf)
        if best == math.inf:
            return 0.0
        speed = best / np.array([*map(history.seconds, trial)])
        surprise = speed - self._first.expected(trial)
        return float(np.average(surprise, weights=speed + FLOOR))

    def _new(self, batch: Sequence[Proposed]) -> list[Proposed]:
        """Take the proposals that nobody asked for before.

        The second search is told the known results of the others.
        """
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
