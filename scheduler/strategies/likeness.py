"""How alike schedules are: the share of decisions in which they agree."""

from __future__ import annotations

import numpy as np

from spaces.space import Population, Space


class Likeness:
    """The likeness of rows of a space: 1.0 for the same row, 0.0 for another template.

    ``choices`` is a boolean matrix [templates, columns]: the template itself, and its own decisions
    that have more than one value. Only these count.
    """

    def __init__(self, space: Space) -> None:
        sizes = [len(space.templates)]
        self.choices = np.zeros((len(space.templates), space.width), dtype=bool)
        self.choices[:, 0] = True
        for i, template in enumerate(space.templates.values()):
            for decision in template.decisions:
                self.choices[i, len(sizes)] = len(decision.values) > 1
                sizes.append(len(decision.values))
        self._first = np.cumsum([0, *sizes])

    def to(self, row: np.ndarray, pool: Population) -> np.ndarray:
        """Of each row of ``pool`` to ``row``."""
        choices = self.choices[row[0]]
        share: np.ndarray = ((pool == row) & choices).sum(axis=1) / choices.sum()
        return share * (pool[:, 0] == row[0])

    def nearest(self, pool: Population, known: Population) -> np.ndarray:
        """Of each row of ``pool`` to that of ``known`` most like it; 0.0 where none is known."""
        equal = self._indicators(pool) @ self._indicators(known).T
        most: np.ndarray = equal.max(axis=1, initial=0.0)
        return most / self.choices[pool[:, 0]].sum(axis=1)

    def _indicators(self, rows: Population) -> np.ndarray:
        """One column for each value of each decision, 1.0 where a row has chosen it: so the product
        of two rows counts the decisions in which they agree."""
        matrix = np.zeros((len(rows), self._first[-1]), dtype=np.float32)
        places, columns = np.nonzero(self.choices[rows[:, 0]])
        matrix[places, self._first[columns] + rows[places, columns]] = 1.0
        return matrix
