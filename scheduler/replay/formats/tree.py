"""Find which values of decisions were recorded together, and make rules of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from tilewright.spaces.template import Columns, Decision, Rule

NOWHERE = -1
"""The node of what was not recorded."""
LARGEST = 2**62
"""Numbers of branches stay below it."""


class Tree:
    """Recorded schedules as a tree.

    A node is a leading part of recorded schedules. Each level, of as many decisions as numbers
    allow, knows its branches as sorted numbers, made of the node that they leave and the values
    that they take; the places of branches are the next nodes.
    """

    def __init__(self, decisions: Sequence[Decision], indices: np.ndarray) -> None:
        """Take ``indices`` [schedules, decisions], which say what values were recorded."""
        self._values = {decision.name: _Values(decision) for decision in decisions}
        self._columns = dict(zip(self._values, indices.T, strict=True))
        self._schedules = len(indices)

    def rules(self) -> tuple[Rule, ...]:
        """Return the rules that admit the recorded combinations only.

        They hold for all leading parts and all pairs of the decisions with more than one value.
        """
        free = [name for name, values in self._values.items() if len(values) > 1]
        groups = [free[:depth] for depth in range(3, len(free) + 1)]
        return tuple(self._rule(group) for group in (*groups, *combinations(free, 2)))

    def _rule(self, names: Sequence[str]) -> Rule:
        levels = list(self._levels(names))

        def holds(columns: Columns) -> np.ndarray:
            nodes = np.zeros((), dtype=np.int64)
            for own, branches in levels:
                taken = nodes
                for name in own:
                    values = self._values[name]
                    taken = taken * len(values) + values.indices(columns[name])
                nodes = np.where(nodes == NOWHERE, NOWHERE, _places(branches, taken))
            return nodes != NOWHERE

        def explain(values: Mapping[str, object]) -> str:
            return "never recorded: " + ", ".join(f"{name}={values[name]}" for name in names)

        return Rule("recorded", tuple(names), holds, explain)

    def _levels(self, names: Sequence[str]) -> Iterator[tuple[list[str], np.ndarray]]:
        """Yield the decisions of each level and its branches."""
        nodes = np.zeros(self._schedules, dtype=np.int64)
        own: list[str] = []
        numbers = 1  # that the branches of a level may have
        for name in names:
            size = len(self._values[name])
            if numbers * size >= LARGEST:
                branches, nodes = np.unique(nodes, return_inverse=True)
                yield own, branches
                own, numbers = [], len(branches)
            nodes, numbers = nodes * size + self._columns[name], numbers * size
            own.append(name)
        yield own, np.unique(nodes)


class _Values:
    """The values of a decision, and the index of each."""

    def __init__(self, decision: Decision) -> None:
        values = np.array(decision.values)
        self._order = np.argsort(values)
        self._sorted = values[self._order]

    def __len__(self) -> int:
        return len(self._sorted)

    def indices(self, column: np.ndarray) -> np.ndarray:
        return self._order[self._sorted.searchsorted(column)]


def _places(branches: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Say where each number stands among the sorted ``branches``; NOWHERE if it does not."""
    places = np.minimum(branches.searchsorted(taken), len(branches) - 1)
    return np.where(branches[places] == taken, places, NOWHERE)
