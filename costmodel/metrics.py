"""How well predicted scores rank measured ones."""

from __future__ import annotations

import numpy as np

BLOCK = 1024


def pairwise_accuracy(predicted: np.ndarray, score: np.ndarray) -> float:
    """Share of pairs with different measured scores that are predicted in the right order.

    A predicted tie counts half. NaN if no two measured scores differ.
    """
    right = pairs = 0.0
    for start in range(0, len(score), BLOCK):
        rows = slice(start, start + BLOCK)
        truth = np.sign(score[rows, None] - score[None, :])
        guess = np.sign(predicted[rows, None] - predicted[None, :])
        differ = truth != 0
        pairs += np.count_nonzero(differ)
        right += np.count_nonzero(differ & (guess == truth))
        right += 0.5 * np.count_nonzero(differ & (guess == 0))
    return right / pairs if pairs else float("nan")


def top(predicted: np.ndarray, score: np.ndarray, k: int) -> float:
    """Best latency over the best latency among the ``k`` predicted best, from scores that are
    best latency over latency: 1.0 if the best is among them, 0.0 if all of them fail."""
    return float(score[_first(predicted, k)].max())


def recall(predicted: np.ndarray, score: np.ndarray, share: float = 0.01) -> float:
    """Share of the measured best ``share`` of schedules that are in the predicted one."""
    k = max(1, round(share * len(score)))
    return len(np.intersect1d(_first(predicted, k), _first(score, k))) / k


def _first(values: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-values, kind="stable")[:k]
