"""Group examples by workload and target, and place them in their spaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.costmodel.interfaces import Example
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

SpaceFor = Callable[[Workload, Target], Space]
Placing = Callable[[Space, Sequence[Schedule]], Sequence[np.ndarray | None]]


@dataclass(frozen=True)
class Group:
    """The measurements of one workload on one target.

    ``population`` has one row a schedule, ``latency`` its seconds (NaN for a failure). Rows are
    sorted by the schedules' keys, so that they do not depend on the order of arrival.
    """

    space: Space
    population: Population
    latency: np.ndarray

    @property
    def score(self) -> np.ndarray:
        """Best latency over latency, failures 0: what a cost model learns."""
        if np.isnan(self.latency).all():
            return np.zeros(len(self.latency))
        return np.nan_to_num(np.nanmin(self.latency) / self.latency, nan=0.0)

    @property
    def name(self) -> tuple[str, str]:
        """Key of the workload and fingerprint of the target."""
        return (self.space.workload.key, self.space.target.fingerprint)

    def subset(self, keep: np.ndarray) -> Group:
        """Return the group with the rows that the boolean array ``keep`` marks."""
        return Group(self.space, self.population[keep], self.latency[keep])


class Places:
    """The rows of schedules in their spaces, None for one that is no point of its space. Each is
    found once."""

    def __init__(self) -> None:
        self._rows: dict[Space, dict[Schedule, np.ndarray | None]] = {}

    def __call__(self, space: Space, schedules: Sequence[Schedule]) -> list[np.ndarray | None]:
        """Return the row of each schedule."""
        rows = self._rows.setdefault(space, {})
        new = [each for each in dict.fromkeys(schedules) if each not in rows]
        rows.update(zip(new, space.placed(new), strict=True))
        return [rows[each] for each in schedules]


def group_examples(
    examples: Sequence[Example], space_for: SpaceFor, placing: Placing = Space.placed
) -> tuple[list[Group], int]:
    """Return the groups in the order of their names, and the number of schedules skipped.

    A schedule measured more than once counts once, with its lowest latency (noise only adds).
    Skipped are schedules that are no point of the workload's space (any more), or whose workload
    has none. Whoever groups the same examples again may hand in :class:`Places`, which remember.
    """
    found: dict[tuple[str, str], list[Example]] = {}
    fingerprints = {target: target.fingerprint for target in {e.target for e in examples}}
    for example in examples:
        name = (example.workload.key, fingerprints[example.target])
        found.setdefault(name, []).append(example)
    groups, skipped = [], 0
    for _, members in sorted(found.items()):
        try:
            space = space_for(members[0].workload, members[0].target)
        except InputError:
            skipped += len({example.schedule for example in members})
            continue
        best: dict[Schedule, float] = {}
        for example in members:
            seconds = np.inf if example.latency is None else example.latency
            best[example.schedule] = min(seconds, best.get(example.schedule, np.inf))
        ordered = sorted(best, key=lambda s: s.key)
        placed = list(zip(ordered, placing(space, ordered), strict=True))
        rows = [row for _, row in placed if row is not None]
        skipped += len(best) - len(rows)
        if rows:
            latency = np.array([best[schedule] for schedule, row in placed if row is not None])
            latency[np.isinf(latency)] = np.nan
            groups.append(Group(space, np.stack(rows), latency))
    return groups, skipped
