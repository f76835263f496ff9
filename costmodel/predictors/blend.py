"""Blend the predictions of boosted trees and a Gaussian process for one space.

On some landscapes the trees are better, on others the process. Their geometric mean is high if both
find a schedule fast, and low if either has seen that such schedules are slow or fail.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.interfaces import Learner
from tilewright.costmodel.model import LEAST_ROWS
from tilewright.costmodel.predictors.gaussian_process import GaussianProcess
from tilewright.spaces.space import Population, Space

MOST_ROWS = 512
"""The most outcomes of a fit. With more, the trees alone know as much, and a fit takes too long."""


class Blend:
    """``trees`` and a Gaussian process over the decisions; a ``costmodel.interfaces.Learner`` of
    the outcomes of one space."""

    def __init__(self, trees: Learner) -> None:
        self.trees = trees
        self._process: GaussianProcess | None = None

    @property
    def unseen(self) -> np.ndarray:
        """See :class:`costmodel.interfaces.Learner`."""
        if self._process is None:
            return self.trees.unseen
        return mixed(self._process.unseen, self.trees.unseen)

    def fit_groups(self, groups: Sequence[Group]) -> None:
        """Train from scratch on ``groups``, which is one."""
        (group,) = groups
        self.trees.fit_groups(groups)
        self._process = None
        if LEAST_ROWS <= len(group.population) <= MOST_ROWS:
            self._process = GaussianProcess(group.space, group.population, group.score)

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """Scores and their standard deviations by the trees: float64, one a schedule."""
        mean, spread = self.trees.predict(space, population)
        if self._process is not None:
            mean = mixed(self._process.predict(population), mean)
        return mean, spread


def mixed(process: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """Return the geometric mean of both scores; 0 where one of them is not above it."""
    both: np.ndarray = np.sqrt(np.maximum(process, 0.0) * np.maximum(trees, 0.0))
    return both
