"""The interface of a cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.costmodel.dataset import Group


@dataclass(frozen=True)
class Example:
    """One measured schedule to learn from. ``latency`` is in seconds; None if it failed."""

    workload: Workload
    target: Target
    schedule: Schedule
    latency: float | None


class Predictor(Protocol):
    """Predicts the quality of schedules."""

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """Return ``(score, uncertainty)``, float64 arrays of the population's length.

        The score is best latency over latency, as far as the model knows: 1.0 is the best and 0.0 a
        failure. The uncertainty is a standard deviation of the score.
        """
        ...


class CostModel(Predictor, Protocol):
    """A predictor that is trained on examples, and can be saved.

    Example::

        model.fit(examples)
        score, uncertainty = model.predict(space, population)
    """

    def fit(self, examples: Sequence[Example]) -> None:
        """Train from scratch on all of ``examples``."""
        ...

    def save(self, path: Path) -> None:
        """Write the model."""
        ...


class Learner(Predictor, Protocol):
    """A predictor that is trained on populations, as a search has them."""

    @property
    def unseen(self) -> np.ndarray:
        """Out-of-sample predictions for each row of the last fit, float64.

        NaN where there is none. Empty if the model has learned nothing, or not from rows.
        """
        ...

    def fit_groups(self, groups: Sequence[Group]) -> None:
        """Train from scratch on all of ``groups``."""
        ...
