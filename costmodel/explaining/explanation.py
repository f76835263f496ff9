"""Attribute the predictions of a trained model to its features.

The attribution is by SHAP values (Lundberg et al., "From local explanations to global understanding
with explainable AI for trees", Nature Machine Intelligence 2, 2020), as XGBoost computes them: how
much each feature moves the predicted score of a schedule away from the mean prediction over all
schedules that are explained. So a feature that is the same for all of them moves nothing. Predicted
speed and predicted validity (will it run?) are explained separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.features import feature_matrix
from tilewright.costmodel.library import load_xgboost
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.trees import weighted_by
from tilewright.spaces.errors import InputError
from tilewright.spaces.space import Population, Space

if TYPE_CHECKING:
    import xgboost

CLEAR = 0.5  # correlation from which on a feature is said to help or to harm


@dataclass(frozen=True)
class Explanation:
    """Contributions of features to what is predicted of schedules: the score that one has if it
    runs, or the log-odds that it does.

    ``values`` [schedules, names] are the features (NaN where a space has none), ``contributions``
    of the same shape are in the unit of what is predicted. ``base`` is the mean prediction: it and
    a schedule's contributions add up to what is predicted of it.
    """

    names: list[str]
    values: np.ndarray
    contributions: np.ndarray
    base: float

    @cached_property
    def importance(self) -> np.ndarray:
        """Mean absolute contribution of each feature."""
        return np.abs(self.contributions).mean(axis=0)

    @cached_property
    def order(self) -> np.ndarray:
        """The features' positions, the most important first."""
        return np.argsort(-self.importance, kind="stable")

    def direction(self, feature: int) -> float:
        """Correlation between a feature's values and what they contribute, -1 to 1; 0 if either
        does not vary."""
        known = np.isfinite(self.values[:, feature])
        value, effect = self.values[known, feature], self.contributions[known, feature]
        if len(value) < 2 or np.ptp(value) == 0 or np.ptp(effect) == 0:
            return 0.0
        return float(np.corrcoef(value, effect)[0, 1])


def explain(
    model: XGBoostModel, parts: Sequence[tuple[Space, Population]]
) -> tuple[Explanation, Explanation | None]:
    """Attribute the predictions for all schedules of ``parts`` to features.

    Returns two explanations: of the score, and of the log-odds of running. The second is None if
    the model has seen no failure. Raises :class:`InputError` if the model has no trees, or there is
    no schedule.
    """
    trained = model.trained
    if trained is None:
        raise InputError("the model has learned nothing, so that there is nothing to explain")
    if not sum(len(population) for _, population in parts):
        raise InputError("there is no schedule to explain the model on")
    names, threads = trained.names, model.settings.threads
    matrix = np.concatenate([feature_matrix(space, rows, names) for space, rows in parts])
    score = _explanation(trained.booster, names, matrix, threads)
    if trained.validity is None:
        return score, None
    return score, _explanation(trained.validity, names, matrix, threads)


def _explanation(
    booster: xgboost.Booster, names: list[str], matrix: np.ndarray, threads: int
) -> Explanation:
    trees = weighted_by(booster, matrix, threads)
    data = load_xgboost().DMatrix(matrix, nthread=threads)
    found = trees.predict(data, pred_contribs=True, strict_shape=True)
    mean = found.mean(axis=1, dtype=np.float64)  # of the ensemble's members
    return Explanation(names, matrix, mean[:, :-1], float(mean[0, -1]))
