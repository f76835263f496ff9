"""Predict a new device from models of several others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import LEAST_ROWS, XGBoostModel
from tilewright.spaces.space import Population, Space


class Council:
    """The mean of models of which each has learned from one device; a
    ``costmodel.interfaces.Predictor``.

    What is fast differs from device to device by more than their sizes tell. Trees that see all of
    them at once fit a compromise as sharp as each; the mean of sharp ones keeps what most agree on.
    """

    def __init__(self, members: Sequence[XGBoostModel]) -> None:
        self.members = members

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """Scores and their standard deviations: by how far the members are unsure, and differ."""
        said = [member.predict(space, population) for member in self.members]
        score = np.array([mean for mean, _ in said])
        variance = np.mean([spread**2 for _, spread in said], axis=0)
        return score.mean(axis=0), np.sqrt(variance + score.var(axis=0))


def council(groups: Sequence[Group]) -> Council | None:
    """A member for each device of ``groups`` that has enough rows to learn from; None if none
    has."""
    members = []
    for device in dict.fromkeys(group.space.target for group in groups):
        own = [group for group in groups if group.space.target == device]
        if sum(len(group.latency) for group in own) >= LEAST_ROWS:
            members.append(XGBoostModel())
            members[-1].fit_groups(own)
    return Council(members) if members else None
