"""Chooses the schedules that are judged next: of the template and case that had the fewest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from experiments.verification.outcomes import JUDGED, OUTCOMES, count, seen
from tilewright.scheduler.verification import Verdict, draw
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template

Pair = tuple[str, type[Template]]
"""A case's name and a template that serves it."""

SIZE = 8
"""Schedules of a group: enough that its problem is worked out for several, and so few that many
cases get their turn."""


@dataclass(frozen=True)
class Group:
    """Schedules of one template for one case."""

    case: str
    kind: type[Template]
    space: Space
    schedules: tuple[Schedule, ...]


class Plan:
    """Groups of random schedules of the templates that serve ``cases`` (texts by name) on a target,
    until ``schedules`` of each template were judged; ``outcomes`` of cases are read and written."""

    def __init__(
        self,
        cases: Mapping[str, str],
        target: Target,
        schedules: int,
        outcomes: dict[str, Any],
        only: Collection[str] = (),
    ) -> None:
        self._target, self._schedules, self._outcomes = target, schedules, outcomes
        workloads = {name: workload(text) for name, text in cases.items()}
        self._served = {
            (name, kind): work
            for name, work in workloads.items()
            for kind in templates_for(target)
            if not kind.last_resort or kind.name in only
            if (not only or kind.name in only) and kind.why_not(work, target) is None
        }
        self._ahead = dict.fromkeys(self._served, 0)  # drawn, and not judged yet
        self._drawn: set[tuple[Pair, Schedule]] = set()
        self._exhausted: set[Pair] = set()
        self._space = cache(self._made)

    def groups(self, seed: int) -> Iterator[Group]:
        """Yield groups that are drawn when they are asked for, each by the next ``seed``."""
        while (pair := self._next()) is not None:
            space = self._space(pair)
            schedules = tuple(s for s in draw(space, SIZE, seed) if (pair, s) not in self._drawn)
            seed += 1
            if not schedules:
                self._exhausted.add(pair)
                continue
            self._drawn.update((pair, schedule) for schedule in schedules)
            self._ahead[pair] += len(schedules)
            yield Group(*pair, space, schedules)

    def take(self, group: Group, verdicts: Sequence[Verdict]) -> None:
        """A group was judged."""
        self._ahead[group.case, group.kind] -= len(group.schedules)
        for verdict in verdicts:
            count(self._outcomes, group.case, group.kind.name, verdict)

    def _next(self) -> Pair | None:
        """Return None if every template has had enough."""
        drawn = {pair: self._number(pair, OUTCOMES) for pair in self._served}
        of_template: Counter[type[Template]] = Counter()
        judged: Counter[type[Template]] = Counter()
        for pair, number in drawn.items():
            of_template[pair[1]] += number
            judged[pair[1]] += self._number(pair, JUDGED)
        wanting = [
            pair
            for pair in self._served
            if judged[pair[1]] < self._schedules and pair not in self._exhausted
        ]
        return min(wanting, key=lambda p: (of_template[p[1]], drawn[p]), default=None)

    def _number(self, pair: Pair, of: Collection[str]) -> int:
        """Count the schedules with such outcomes, and those that are to have one."""
        return self._ahead[pair] + seen(self._outcomes, pair[0], pair[1].name, of)

    def _made(self, pair: Pair) -> Space:
        work = self._served[pair]
        return Space(work, self._target, [pair[1](work, self._target)])
