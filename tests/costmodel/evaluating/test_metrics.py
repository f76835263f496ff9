from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.costmodel.evaluating.metrics import (
    METRICS,
    Ranking,
    average_peak,
    best_pairwise_accuracy,
    coverage,
    pairwise_accuracy,
    recall,
    top,
)

values = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30).map(
    lambda pairs: np.array(pairs, dtype=float).T
)


def counted(pairs) -> float:
    """Pairwise accuracy of (predicted, measured) scores, one pair of them after the other."""
    right = [
        0.5 if p == q else float((p < q) == (s < t))
        for (p, s), (q, t) in itertools.combinations(pairs, 2)
        if s != t
    ]
    return float(np.mean(right)) if right else math.nan


@settings(max_examples=60, deadline=None)
@given(values)
def test_pairwise_accuracy_counts_pairs(both):
    found = pairwise_accuracy(*both)
    assert found == pytest.approx(counted(list(zip(*both, strict=True))), nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(values, st.sampled_from([0.1, 0.25, 0.5]))
def test_pairwise_accuracy_of_the_best_includes_ties_and_no_failure(both, share):
    predicted, score = both
    last = sorted(score, reverse=True)[max(1, round(share * len(score))) - 1]
    best = [(p, s) for p, s in zip(predicted, score, strict=True) if s >= last and s > 0]
    found = best_pairwise_accuracy(predicted, score, share)
    assert found == pytest.approx(counted(best), nan_ok=True)


def test_pairwise_accuracy_of_many_schedules_is_exact_and_takes_little_memory():
    """A hundred thousand of one workload make five billion pairs."""
    generator = np.random.default_rng(0)
    score = generator.random(20_000)
    tracemalloc.start()
    found = [pairwise_accuracy(predicted, score) for predicted in (score**3, -score, 0.0 * score)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [1.0, 0.0, 0.5]
    assert peak < 32 << 20


def test_top_is_the_share_of_the_best_speed_reached():
    score = np.array([0.5, 1.0, 0.0, 0.8])
    predicted = np.array([0.9, 0.1, 1.0, 0.8])
    assert [top(predicted, score, k) for k in (1, 2, 3, 4, 9)] == [0.0, 0.5, 0.8, 1.0, 1.0]


def test_recall_is_the_overlap_of_the_best():
    score = np.arange(200.0)
    assert recall(score, score) == 1.0
    assert recall(-score, score) == 0.0
    predicted = score.copy()
    predicted[199] = -1  # the best is missed, the second is still among the first two
    assert recall(predicted, score, 0.01) == 0.5


@settings(max_examples=60, deadline=None)
@given(values, st.sampled_from([0.01, 0.1, 0.3]))
def test_recall_takes_a_tie_with_the_last_of_the_best_for_one_of_them(both, share):
    predicted, score = both
    k = max(1, round(share * len(score)))
    last = sorted(score, reverse=True)[k - 1]
    chosen = sorted(range(len(score)), key=lambda i: -predicted[i])[:k]
    assert recall(predicted, score, share) == sum(score[i] >= last for i in chosen) / k


@settings(max_examples=60, deadline=None)
@given(values, st.integers(1, 40))
def test_the_average_peak_is_the_mean_of_the_best_so_far(both, k):
    predicted, score = both
    tried = min(k, len(score))
    curve = [top(predicted, score, i) for i in range(1, tried + 1)]
    assert average_peak(predicted, score, k) == pytest.approx(np.mean(curve))


def test_normal_errors_are_covered_as_calibrated_ones_are():
    generator = np.random.default_rng(0)
    spread = generator.uniform(0.1, 2.0, 20_000)
    predicted = generator.random(20_000)
    right = Ranking(predicted + spread * generator.standard_normal(20_000), predicted, spread)
    assert coverage(right, 1.0) == pytest.approx(0.683, abs=0.015)
    assert coverage(right, 1.96) == pytest.approx(0.95, abs=0.01)
    sure = Ranking(right.score, predicted, spread / 4)
    assert coverage(sure, 1.96) < 0.5


def test_perfect_predictions_are_perfect_by_every_metric():
    score = np.random.default_rng(0).random(300)
    score /= score.max()
    ranking = Ranking(score, score, np.full(300, 1e-6))
    assert [metric.of(ranking) for metric in METRICS] == pytest.approx([1.0] * len(METRICS))
