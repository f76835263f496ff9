"""Learn failures: predict how likely a schedule is to build, run and be right.

The causes of failures are seldom those of low speed, and a failure does not tell how fast the
kernel would have been. So separate boosted trees tell the two kinds apart (logistic loss), and
those that predict speed learn from schedules that ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.costmodel.library import load_xgboost

if TYPE_CHECKING:
    import xgboost

ROUNDS = 20
DEPTH = 3
LEARNING_RATE = 0.3
BINS = 32


def learn_validity(
    matrix: np.ndarray, ran: np.ndarray, seed: int, threads: int
) -> xgboost.Booster | None:
    """Return the trees that give the log-odds of running from features [rows, names], by whether
    each row ``ran``; None unless some did and some did not."""
    if ran.all() or not ran.any():
        return None
    xgboost = load_xgboost()
    data = xgboost.QuantileDMatrix(matrix, label=ran, max_bin=BINS, nthread=threads)

    def loss(log_odds: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
        likely = _likely(log_odds)
        return likely - ran, likely * (1.0 - likely)

    parameters = {
        "tree_method": "hist",
        "max_bin": BINS,
        "max_depth": DEPTH,
        "eta": LEARNING_RATE,
        "min_child_weight": 0.1,
        "base_score": float(np.log(ran.mean() / (1.0 - ran.mean()))),
        "seed": seed,
        "nthread": threads,
    }
    return xgboost.train(parameters, data, ROUNDS, obj=loss)


def validity(booster: xgboost.Booster | None, matrix: np.ndarray) -> np.ndarray:
    """Probability that each row runs, float64 [rows]; 1 where nothing was learned of failures."""
    if booster is None:
        return np.ones(len(matrix))
    return _likely(booster.inplace_predict(matrix).astype(np.float64))


def _likely(log_odds: np.ndarray) -> np.ndarray:
    probability: np.ndarray = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -30.0, 30.0)))
    return probability
