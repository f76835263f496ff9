"""Boosted trees with another model's prediction as a feature."""

from __future__ import annotations

from tilewright.costmodel.dataset import SpaceFor
from tilewright.costmodel.features import Column
from tilewright.costmodel.interfaces import Predictor
from tilewright.costmodel.model import Settings, XGBoostModel
from tilewright.spaces.space import Population, Space

ADVICE = "advice.score"
"""The feature that is the adviser's score."""


class AdvisedModel(XGBoostModel):
    """Predicts as :class:`costmodel.model.XGBoostModel`, with the score by ``adviser`` as a
    feature.

    The trees need not learn again, from few rows, what the adviser knows. :meth:`save` does not
    write the adviser.
    """

    def __init__(self, adviser: Predictor, settings: Settings, space_for: SpaceFor) -> None:
        super().__init__(settings, space_for)
        self._adviser = adviser

    def columns(self, space: Space, population: Population) -> dict[str, Column]:
        """The features of each schedule by name, with the adviser's prediction among them."""
        advice, _ = self._adviser.predict(space, population)
        return super().columns(space, population) | {ADVICE: advice}
