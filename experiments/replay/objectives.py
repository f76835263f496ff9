"""Compares objectives of a cost model, everything else left equal."""

from __future__ import annotations

import numpy as np

from tilewright.costmodel.model import XGBoostModel


class Unweighted(XGBoostModel):
    """Squared error of best over latency, every schedule alike."""

    def _gradient(self, margin: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return margin - labels[:, None], np.ones_like(margin)


class Logarithmic(Unweighted):
    """Squared error of the logarithm of best over latency; a failure counts as 32 times slower."""

    def _labels(self, score: np.ndarray) -> np.ndarray:
        return np.log2(np.maximum(score, 1 / 32))


class Pairwise(XGBoostModel):
    """Logistic loss of the difference of each pair (RankNet; Burges et al., ICML 2005)."""

    def _gradient(self, margin: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        better = np.sign(labels[:, None] - labels[None, :])
        first, second = np.empty_like(margin), np.empty_like(margin)
        for member, values in enumerate(margin.T):
            lead = np.clip(better * (values[:, None] - values[None, :]), -30, 30)
            doubt = np.abs(better) / (1 + np.exp(lead))
            first[:, member] = -(better * doubt).mean(axis=1)
            second[:, member] = (doubt * (1 - doubt)).mean(axis=1) + 1e-6
        return first * len(labels) ** 0.5, second * len(labels) ** 0.5


OBJECTIVES: dict[str, type[XGBoostModel]] = {
    "weighted": XGBoostModel,
    "unweighted": Unweighted,
    "logarithmic": Logarithmic,
    "pairwise": Pairwise,
}
