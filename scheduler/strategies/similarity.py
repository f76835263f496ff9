"""Measure how alike schedules are: the share of decisions in which they agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.spaces.schedule import Value
from tilewright.spaces.space import Population, Space


class Similarity:
    """The likeness of rows of a space: 1.0 for the same row, 0.0 for another template.

    ``choices`` is a boolean matrix [templates, columns]: the template itself, and its own decisions
    that have more than one value. Only these count. Values of a decision agree if they are the
    same; ``by_steps``, those that are numbers in rising order agree the more the fewer steps they
    are apart, and not at all from end to end (Gower, Biometrics 27, 1971).
    """

    def __init__(self, space: Space, by_steps: bool = False) -> None:
        self.choices = np.zeros((len(space.templates), space.width), dtype=bool)
        self.choices[:, 0] = True
        self._steps = np.zeros(space.width)  # from end to end; 0 where only the same agree
        column = 1
        for i, template in enumerate(space.templates.values()):
            for decision in template.decisions:
                self.choices[i, column] = len(decision.values) > 1
                if by_steps and _is_ordered(decision.values):
                    self._steps[column] = len(decision.values) - 1
                column += 1

    def to(self, row: np.ndarray, pool: Population) -> np.ndarray:
        """Return the likeness of each row of ``pool`` to ``row``, from 0 to 1."""
        choices = self.choices[row[0]]
        agree = pool == row
        if self._steps.any():
            near = 1.0 - np.abs(pool - row) / np.maximum(self._steps, 1.0)
            agree = np.where(self._steps > 0, near, agree)
        share: np.ndarray = (agree * choices).sum(axis=1) / choices.sum()
        return share * (pool[:, 0] == row[0])

    def nearest(self, pool: Population, known: Population) -> np.ndarray:
        """Return the likeness of each row of ``pool`` to the row of ``known`` nearest to it.

        It counts equal values; 0.0 if no row of the same template is known.
        """
        most = np.zeros(len(pool))
        for template, choices in enumerate(self.choices):
            ours, theirs = pool[:, 0] == template, known[:, 0] == template
            if ours.any() and theirs.any():
                agreements = _agreements(pool[ours][:, choices], known[theirs][:, choices])
                most[ours] = agreements.max(axis=1) / choices.sum()
        return most


def _is_ordered(values: Sequence[Value]) -> bool:
    """True for three or more numbers in rising order: only then does their order mean something."""
    numbers = all(type(value) in (int, float) for value in values)
    return numbers and len(values) > 2 and list(values) == sorted(values)


def _agreements(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Count in how many columns each row [rows, others] agrees with each other one.

    A matrix product of indicators would say the same, but its threads take the cores of whatever is
    being measured meanwhile.
    """
    counts = np.zeros((len(rows), len(others)), dtype=np.uint16)
    for column, other in zip(rows.T.astype(np.uint16), others.T.astype(np.uint16), strict=True):
        counts += column[:, None] == other
    return counts
