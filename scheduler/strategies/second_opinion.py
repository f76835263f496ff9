"""Run two searches of one space: one with prior knowledge, and one without.

Measurements of other shapes and devices save most of a search. But if the fastest schedules lie
elsewhere, they keep the search among the second best, and no measurement there shows it: the models
are right about all that they are asked about. So a search from nothing is given a trial. If its
schedules are faster than the prior says, the prior does not know this space, and the second search
continues.

The second search learns from its own schedules alone. If it were told all, or given the same
starters or prior, it would stay where the first one is. So it is kept away from there. The prior is
still useful as one feature of its model: where it misleads as a whole, it may be right about some
decisions.
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
    """Runs ``first``, and for a while a second search in its place; a
    ``scheduler.strategies.search.Search``.

    ``begin`` makes the second search. It gets the fastest of the first ``LATEST`` schedules that
    were told (none if all failed), and keeps away from it. It is told the outcomes of its own
    schedules alone, and for known ones at once. So a resumed run finds it unchanged. ``first``
    learns from all.
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
        """Return at most ``count`` new schedules, those of the second first."""
        asked: list[Proposed] = []
        while (more := min(count - len(asked), self._share() - len(self._own))) > 0:
            batch = self._second.ask(more)
            if not batch:
                break
            asked += self._new(batch)
        return asked + self._first.ask(count - len(asked))

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Take outcomes, in any order."""
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
        """Return the number of schedules that the second search may have asked for by now."""
        if self._first.history.news < LATEST:
            return 0
        return MOST if self._surprise() > MISLED else TRIAL

    def _surprise(self) -> float:
        """Return the mean gain of the trial over the forecast of ``first``, as a share of the best
        speed.

        It is weighed as in ``trust``, and 0.0 until all of the trial is known. Later results of the
        second search do not count as the best, so the value does not depend on them.
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
