"""Boosted trees with another model's prediction as a feature."""

from __future__ import annotations

from tilewright.costmodel.dataset import SpaceFor
from tilewright.costmodel.features import Column
from tilewright.costmodel.interfaces import Predictor
from tilewright.costmodel.model import Settings, XGBoostModel
from tilewright.spaces.space import Population, Space

ADVICE = "advice.score"
"""The feature that is the base model's score."""


class StackedModel(XGBoostModel):
    """Predicts as :class:`costmodel.model.XGBoostModel`, with the score by ``base`` as a
    feature.

    The trees need not learn again, from few rows, what the base model knows. :meth:`save` does not
    write the base model.
    """

    def __init__(self, base: Predictor, settings: Settings, space_for: SpaceFor) -> None:
        super().__init__(settings, space_for)
        self._base = base

    def columns(self, space: Space, population: Population) -> dict[str, Column]:
        """Return the features of each schedule by name, with the base model's prediction among
        them."""
        advice, _ = self._base.predict(space, population)
        return super().columns(space, population) | {ADVICE: advice}
