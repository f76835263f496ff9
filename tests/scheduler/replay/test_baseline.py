"""What is expected of random draws."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.scheduler.replay.toys import hilly
from tilewright.scheduler.replay.baseline import calculated_baseline, exact_baseline
from tilewright.scheduler.replay.intervals import mean
from tilewright.scheduler.replay.run import replay
from tilewright.scheduler.replay.scores import Replays, measures
from tilewright.scheduler.strategies.registry import factory

SECONDS = np.array([4.0, 1.0, 2.0, np.inf, 2.0, 16.0, 3.0])


def test_the_exact_baseline_is_the_mean_over_all_draws():
    times = [16.0 if np.isinf(s) else s for s in SECONDS]  # a failure is as bad as the slowest
    expected = [np.mean([min(c) for c in combinations(times, n)]) for n in range(1, 8)]
    np.testing.assert_allclose(exact_baseline(SECONDS, 7), expected)


def test_who_draws_all_has_the_best():
    assert exact_baseline(SECONDS, 9)[7:] == pytest.approx([1.0, 1.0])


def test_a_space_of_one_schedule():
    np.testing.assert_array_equal(exact_baseline(np.array([2.0]), 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(calculated_baseline(np.array([2.0]), 3), [2.0, 2.0, 2.0])


def test_the_calculated_baseline_is_the_published_formula():
    """By hand: of the six that ran, slowest first, those at round(7 t / (t + 1))."""
    slowest_first = [16.0, 4.0, 3.0, 2.0, 2.0, 1.0]
    places = [round(7 * t / (t + 1)) for t in range(1, 8)]
    assert places == [4, 5, 5, 6, 6, 6, 6]
    expected = [slowest_first[min(place, 5)] for place in places]
    np.testing.assert_array_equal(calculated_baseline(SECONDS, 7), expected)


def test_random_search_scores_nothing_against_the_exact_baseline_alone():
    recording = hilly()
    runs = [replay(recording, factory("random")(recording.space, s), 64, 8) for s in range(60)]
    replays = Replays(recording, runs, 64)
    of = {m.key: m.values(replays) for m in measures(64) if m.key in ("p", "p_calculated")}
    exact, bias = mean(of["p"]), mean(of["p_calculated"] - of["p"])
    assert exact.low < 0 < exact.high
    assert bias.low > 0.02
