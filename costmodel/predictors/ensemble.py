"""Predict a new device from models of several others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import LEAST_ROWS, XGBoostModel
from tilewright.spaces.space import Population, Space


class Ensemble:
    """The mean of several models, each trained on one device; a ``costmodel.interfaces.Predictor``.

    Fast schedules differ between devices by more than device sizes explain. Trees trained on all
    devices at once fit a compromise. The mean of separate models keeps the preferences that most
    share.
    """

    def __init__(self, members: Sequence[XGBoostModel]) -> None:
        self.members = members

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """Scores and their standard deviations: by how far the members are unsure, and differ."""
        said = [member.predict(space, population) for member in self.members]
        score = np.array([mean for mean, _ in said])
        variance = np.mean([spread**2 for _, spread in said], axis=0)
        return score.mean(axis=0), np.sqrt(variance + score.var(axis=0))


def ensemble(groups: Sequence[Group]) -> Ensemble | None:
    """Train a model for each device of ``groups`` that has enough rows; None if none has."""
    members = []
    for device in dict.fromkeys(group.space.target for group in groups):
        own = [group for group in groups if group.space.target == device]
        if sum(len(group.latency) for group in own) >= LEAST_ROWS:
            members.append(XGBoostModel())
            members[-1].fit_groups(own)
    return Ensemble(members) if members else None
