"""Boosted trees that also see what an adviser says, and learn where it is right."""

from __future__ import annotations

from tilewright.costmodel.dataset import SpaceFor
from tilewright.costmodel.features import Column
from tilewright.costmodel.interfaces import Predictor
from tilewright.costmodel.model import Settings, XGBoostModel
from tilewright.spaces.space import Population, Space

ADVICE = "advice.score"
"""The feature that is the adviser's score."""


class AdvisedModel(XGBoostModel):
    """Predicts as :class:`costmodel.model.XGBoostModel`, where the score that ``adviser`` gives a
    schedule is one feature more: what the adviser knows need not be found again from few rows. The
    adviser is no part of what :meth:`save` writes."""

    def __init__(self, adviser: Predictor, settings: Settings, space_for: SpaceFor) -> None:
        super().__init__(settings, space_for)
        self._adviser = adviser

    def columns(self, space: Space, population: Population) -> dict[str, Column]:
        """The features of each schedule by name, with the adviser's prediction among them."""
        advice, _ = self._adviser.predict(space, population)
        return super().columns(space, population) | {ADVICE: advice}
