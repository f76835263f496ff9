"""Says which values of a decision the rules allow, given the decisions made before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod

import numpy as np

from tilewright.spaces.template import Rule

WHOLE_ENTRIES = 1 << 16  # entries of a truth table that is worked out at once, at most
TABLE_ENTRIES = 1 << 20  # entries of one truth table, at most
JOINT_ENTRIES = 1 << 12  # entries of the table of several rules, at most

Values = Mapping[str, tuple[int, np.ndarray]]
"""Decision name to its column in a population and its values."""


class Judge:
    """Says which values of a decision some rules allow, given the other decisions that they read.

    A search asks the same questions again and again, so their answers are kept in a table, if it
    is not too large. All that a small one has room for are worked out together, once as many were
    asked for one by one.
    """

    def __init__(self, rules: Sequence[Rule], own: str, decisions: Values) -> None:
        """``own`` is the decision that is made; ``decisions`` holds all that the rules read."""
        self._rules, self._own = rules, decisions[own][1]
        self._others = _others(rules, own, decisions)
        self._known = {name: decisions[name][1] for rule in rules for name in rule.reads}
        self._known[own] = self._own[None, :]
        self._columns = np.array([column for column, _ in self._others.values()], dtype=np.intp)
        sizes = [len(values) for _, values in self._others.values()]
        self._combinations = prod(sizes)
        self._sizes = tuple(sizes)
        self._asked = 0
        self._complete = False

    @cached_property
    def _steps(self) -> np.ndarray:
        """Say how far apart the values of each decision lie in the table, if there can be one: of
        the type of populations, since NumPy multiplies whole numbers of two types much more
        slowly."""
        sizes = self._sizes
        return np.array([prod(sizes[i + 1 :]) for i in range(len(sizes))], dtype=np.int32)

    def allows(self, partial: np.ndarray) -> np.ndarray:
        """Boolean matrix [rows, values] for rows of a population in which all but the own decision
        are made."""
        if self._combinations == 1:
            return self._everywhere.repeat(len(partial), axis=0)
        chosen = partial[:, self._columns]
        if self._combinations > TABLE_ENTRIES // len(self._own):
            return self._worked_out(chosen)
        places = chosen @ self._steps
        if not self._complete:
            self._learn(chosen, places)
        return self._table.take(places, axis=0)

    @property
    def is_vain(self) -> bool:
        """Tell whether the rules surely allow everything, without asking them of many
        combinations.
        """
        return self._combinations == 1 and bool(self._everywhere.all())

    @cached_property
    def _everywhere(self) -> np.ndarray:
        """The only row of the table, where the rules read no other decision."""
        return self._worked_out(np.zeros((1, 0), dtype=np.intp))

    @cached_property
    def _table(self) -> np.ndarray:
        return np.zeros((self._combinations, len(self._own)), dtype=bool)

    @cached_property
    def _answered(self) -> np.ndarray:
        """Tell for each row of the table whether it is worked out."""
        return np.zeros(self._combinations, dtype=bool)

    def _learn(self, chosen: np.ndarray, places: np.ndarray) -> None:
        """Work out the rows of the table at these places, those of ``chosen``."""
        new = ~self._answered[places]
        if not new.any():
            return
        self._asked += len(places)
        if self._combinations <= min(self._asked, WHOLE_ENTRIES // len(self._own)):
            every = np.indices(self._sizes).reshape(len(self._sizes), self._combinations)
            self._table[:] = self._worked_out(every.T)
            self._complete = True
            return
        self._table[places[new]] = self._worked_out(chosen[new])
        self._answered[places[new]] = True

    def _worked_out(self, chosen: np.ndarray) -> np.ndarray:
        """Return the answers for rows of indices of the other decisions' values."""
        columns = dict(self._known)
        for index, (name, (_, values)) in zip(chosen.T, self._others.items(), strict=True):
            columns[name] = values[index][:, None]
        allowed = np.ones((len(chosen), len(self._own)), dtype=bool)
        for rule in self._rules:
            allowed &= np.asarray(rule.holds(columns), dtype=bool)
        return allowed


def together(rules: Sequence[Rule], own: str, decisions: Values) -> Iterator[list[Rule]]:
    """Yield ``rules`` in groups that are best judged by one table each: large enough to save
    questions, small enough to be soon filled."""
    group: list[Rule] = []
    for rule in rules:
        others = _others([*group, rule], own, decisions).values()
        entries = prod(len(values) for _, values in (*others, decisions[own]))
        if group and entries > JOINT_ENTRIES:
            yield group
            group = []
        group.append(rule)
    if group:
        yield group


def _others(rules: Sequence[Rule], own: str, decisions: Values) -> Values:
    """Return the decisions that are read beside ``own``, those that have but one value left out."""
    reads = dict.fromkeys(name for rule in rules for name in rule.reads if name != own)
    return {name: decisions[name] for name in reads if len(decisions[name][1]) > 1}
