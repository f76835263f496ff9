"""Metrics of how well predicted scores rank measured ones.

A score is best latency over latency within one workload and target, a failure's is 0. The metrics
are those of TenSet (Zheng et al., NeurIPS Datasets 2021) and of TVM's cost models, whose average
peak score is ``a-peak``; ties are counted as each function says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

DECILE = 0.1
PEAK = 32  # schedules of a batch that a search might measure


@dataclass(frozen=True)
class Ranking:
    """Measured ``score`` of some schedules of one workload and target, and what a model predicted
    of them: a score and its standard deviation (``spread``). Float64 arrays of one length."""

    score: np.ndarray
    predicted: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True)
class Metric:
    """A share between 0 and 1 that says how good a ranking is.

    ``name`` heads its column, ``meaning`` explains it in a line. With fewer schedules than
    ``least_rows`` it says nothing, and is left out.
    """

    name: str
    meaning: str
    least_rows: int
    of: Callable[[Ranking], float]


def pairwise_accuracy(predicted: np.ndarray, score: np.ndarray) -> float:
    """Return the share of pairs with different measured scores that are predicted in the right
    order.

    A predicted tie counts half. NaN if no two measured scores differ. By way of Kendall's tau-b,
    which takes n log n steps: it is how many more pairs are in the right order than in the wrong
    one, over the geometric mean of those that differ in either.
    """
    from scipy.stats import kendalltau

    differ, told_apart = _different_pairs(score), _different_pairs(predicted)
    if not differ:
        return float("nan")
    if not told_apart:
        return 0.5
    surplus = kendalltau(predicted, score).statistic * sqrt(differ * told_apart)
    return float(0.5 + 0.5 * round(surplus) / differ)


def _different_pairs(values: np.ndarray) -> int:
    _, counts = np.unique(values, return_counts=True)
    return comb(len(values), 2) - sum(comb(count, 2) for count in counts.tolist())


def best_pairwise_accuracy(
    predicted: np.ndarray, score: np.ndarray, share: float = DECILE
) -> float:
    """:func:`pairwise_accuracy` among the measured best ``share`` of schedules, those included
    that tie with the last of them, failures not. NaN if no two of their scores differ."""
    last = score[_first(score, max(1, round(share * len(score))))[-1]]
    best = (score >= last) & (score > 0)
    return pairwise_accuracy(predicted[best], score[best])


def top(predicted: np.ndarray, score: np.ndarray, k: int) -> float:
    """Best latency over the best latency among the ``k`` predicted best, from scores that are
    best latency over latency: 1.0 if the best is among them, 0.0 if all of them fail."""
    return float(score[_first(predicted, k)].max())


def average_peak(predicted: np.ndarray, score: np.ndarray, k: int) -> float:
    """Return the mean of :func:`top` over 1 to ``k``: the curve of a search that measures the
    predicted best first (``a-peak@k`` of TVM)."""
    return float(np.maximum.accumulate(score[_first(predicted, k)]).mean())


def recall(predicted: np.ndarray, score: np.ndarray, share: float = 0.01) -> float:
    """Return the share of the predicted best schedules that are among the measured best.

    ``share`` of all schedules count as best. Ties with the last of the measured best count.
    """
    k = max(1, round(share * len(score)))
    return float(np.mean(score[_first(predicted, k)] >= score[_first(score, k)[-1]]))


def coverage(ranking: Ranking, deviations: float) -> float:
    """Return the share of measured scores within so many predicted standard deviations of the
    prediction."""
    error = np.abs(ranking.score - ranking.predicted)
    return float((error <= deviations * ranking.spread).mean())


METRICS = (
    Metric(
        "pairwise",
        "pairs of schedules that are predicted in the right order, ties half; chance gives 50 %",
        2,
        lambda r: pairwise_accuracy(r.predicted, r.score),
    ),
    Metric(
        "pairwise of best 10%",
        "the same among the fastest tenth, where it is hardest and counts most",
        50,
        lambda r: best_pairwise_accuracy(r.predicted, r.score),
    ),
    Metric(
        "top-1",
        "speed of the predicted best, where the fastest has 100 %",
        2,
        lambda r: top(r.predicted, r.score, 1),
    ),
    Metric(
        "top-5",
        "speed of the fastest of the 5 predicted best, where the fastest of all has 100 %",
        10,
        lambda r: top(r.predicted, r.score, 5),
    ),
    Metric(
        "recall@1%",
        "of the fastest 1 %, the share that is among the predicted 1 %",
        100,
        lambda r: recall(r.predicted, r.score, 0.01),
    ),
    Metric(
        f"a-peak@{PEAK}",
        f"mean speed of the best so far while the {PEAK} predicted best are tried in turn",
        2 * PEAK,
        lambda r: average_peak(r.predicted, r.score, PEAK),
    ),
    Metric(
        "within 1 sd",
        "scores within 1 predicted standard deviation: 68 % is right, less is too sure of itself",
        20,
        lambda r: coverage(r, 1.0),
    ),
    Metric(
        "within 2 sd",
        "scores within 1.96 predicted standard deviations: 95 % is right",
        20,
        lambda r: coverage(r, 1.96),
    ),
)


def _first(values: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-values, kind="stable")[:k]
