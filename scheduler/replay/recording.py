"""A recording: a space whose schedules were measured before, and what came of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.scheduler.replay.formats.tree import Tree
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Population, Space
from tilewright.spaces.template import Decision, Template

MOST_VALUES = 1 << 16
"""Values that a decision may have, for searches keep their indices as 16 bits."""


@dataclass(frozen=True)
class Outcome:
    """The recorded result of one schedule.

    ``seconds`` is the time of one call, None if it failed. ``cost`` is the time to compile and time
    it, in seconds, None if it was not recorded.
    """

    seconds: float | None
    cost: float | None = None


@dataclass(frozen=True)
class Recording:
    """The schedules of ``space``, which are those that were measured, and the outcome of each."""

    name: str
    space: Space
    outcomes: Mapping[Schedule, Outcome]

    @cached_property
    def seconds(self) -> np.ndarray:
        """The time of each schedule, float64; infinite where it failed."""
        times = (outcome.seconds for outcome in self.outcomes.values())
        return np.array([np.inf if time is None else time for time in times])

    @cached_property
    def costs(self) -> np.ndarray | None:
        """The cost of each schedule, float64 seconds; None if any is not known."""
        costs = [outcome.cost for outcome in self.outcomes.values()]
        return None if None in costs else np.array(costs, dtype=np.float64)

    @property
    def failures(self) -> int:
        """Say how many of the schedules failed."""
        return int(np.isinf(self.seconds).sum())

    @property
    def optimum(self) -> float:
        """Seconds of the fastest schedule."""
        return float(self.seconds.min())


def recording(
    name: str, templates: Iterable[Template], outcomes: Mapping[Schedule, Outcome]
) -> Recording:
    """Return the recording of ``outcomes``, whose schedules ``templates`` make.

    :class:`InputError` if none of them ran, or a decision has more values than searches can keep.
    """
    if not any(outcome.seconds is not None for outcome in outcomes.values()):
        raise InputError(f"{name}: none of its {len(outcomes)} schedules ran")
    known = [only(template, outcomes) for template in templates]
    space = RecordedSpace([template for template in known if template is not None], outcomes)
    return Recording(name, space, outcomes)


def merged(attempts: Iterable[tuple[Schedule, Outcome]]) -> dict[Schedule, Outcome]:
    """Return the outcome of each schedule: of several attempts the lowest time, for noise only
    adds, and the cost of the first."""
    found: dict[Schedule, Outcome] = {}
    for schedule, outcome in attempts:
        first = found.setdefault(schedule, outcome)
        known = [seconds for seconds in (first.seconds, outcome.seconds) if seconds is not None]
        found[schedule] = Outcome(min(known, default=None), first.cost)
    return found


class RecordedSpace(Space):
    """The space of what was recorded. It knows all its schedules, so it draws them evenly."""

    def __init__(self, templates: Sequence[Template], schedules: Collection[Schedule]) -> None:
        super().__init__(templates[0].workload, templates[0].target, templates)
        self._schedules = frozenset(schedules)
        self._recorded = np.stack([self._points.row(schedule) for schedule in schedules])

    def why_not(self, schedule: Schedule) -> str | None:
        """See :meth:`Space.why_not`; of what was recorded without judging it by the rules."""
        return None if schedule in self._schedules else super().why_not(schedule)

    def sample(self, generator: np.random.Generator, count: int) -> Population:
        """Return ``count`` random schedules, each as likely as any other; duplicates are
        possible."""
        return self._recorded[generator.integers(0, len(self._recorded), count)]


def only(template: Template, schedules: Iterable[Schedule]) -> Template | None:
    """Return ``template`` without what was not recorded; None if it made none of the ``schedules``.

    Its rules allow each leading part of a recorded schedule, and each recorded pair of values, so
    that schedules can be made decision by decision, whichever comes first.
    """
    own = [schedule.values for schedule in schedules if schedule.template == template.name]
    if not own:
        return None
    decisions, columns = [], []
    for decision in template.decisions:
        values, column = _restricted(decision, [point[decision.name] for point in own])
        decisions.append(values)
        columns.append(column)
    restricted = copy(template)
    restricted.decisions = tuple(decisions)
    indices = np.array(columns, dtype=np.int64).reshape(len(decisions), len(own)).T
    restricted.rules = Tree(decisions, indices).rules()
    return restricted


def _restricted(decision: Decision, recorded: list[Value]) -> tuple[Decision, np.ndarray]:
    """Return the decision with its recorded values, and the index of each in the given order."""
    seen = set(recorded)
    values = tuple(value for value in decision.values if value in seen)
    if len(values) > MOST_VALUES:
        raise InputError(
            f"{decision.name} has {len(values)} values; allowed: up to {MOST_VALUES} of a decision"
        )
    place = {value: i for i, value in enumerate(values)}
    return Decision(decision.name, values), np.array([place[value] for value in recorded])
