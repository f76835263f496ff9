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
    """One measured schedule to learn from. ``latency`` in seconds; None if it failed."""

    workload: Workload
    target: Target
    schedule: Schedule
    latency: float | None


class Predictor(Protocol):
    """Says how good schedules are."""

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """``(score, uncertainty)``, float64 arrays of the population's length.

        The score rises with quality: best latency over latency, as far as the model knows, so
        1.0 is the best and 0.0 a failure. The uncertainty is a standard deviation of the score.
        """
        ...


class CostModel(Predictor, Protocol):
    """Learns how good schedules are."""

    def fit(self, examples: Sequence[Example]) -> None:
        """Train from scratch on all of ``examples``."""
        ...

    def save(self, path: Path) -> None:
        """Write the model."""
        ...


class Learner(Predictor, Protocol):
    """Learns from populations, as a search has them."""

    @property
    def unseen(self) -> np.ndarray:
        """Out-of-sample predictions for each row of the last fit, float64.

        NaN where there is none. Empty if the model has learned nothing, or not from rows.
        """
        ...

    def fit_groups(self, groups: Sequence[Group]) -> None:
        """Train from scratch on all of ``groups``."""
        ...
