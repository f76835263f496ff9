from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.metrics import pairwise_accuracy, recall, top

values = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30).map(
    lambda pairs: np.array(pairs, dtype=float).T
)


@settings(max_examples=60, deadline=None)
@given(values)
def test_pairwise_accuracy_counts_pairs(both):
    predicted, score = both
    right = [
        0.5 if p == q else float((p < q) == (s < t))
        for (p, s), (q, t) in itertools.combinations(zip(predicted, score, strict=True), 2)
        if s != t
    ]
    found = pairwise_accuracy(predicted, score)
    assert math.isnan(found) if not right else found == pytest.approx(np.mean(right))


def test_pairwise_accuracy_does_not_depend_on_blocks():
    generator = np.random.default_rng(0)
    score = generator.random(2500)
    assert pairwise_accuracy(score**3, score) == 1.0
    assert pairwise_accuracy(-score, score) == 0.0


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
