"""Scores of runs whose times are known, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scheduler.replay.formats.test_reading import read
from tests.scheduler.replay.toys import CACHE
from tilewright.scheduler.replay.intervals import Estimate, mean, median, share
from tilewright.scheduler.replay.repeats import Settings
from tilewright.scheduler.replay.report import as_json, differences
from tilewright.scheduler.replay.run import Run
from tilewright.scheduler.replay.scores import Replays, measures

FAILED = np.inf
RUNS = (  # seconds of the toy's schedules, whose optimum is 2 ms and whose slowest 8 ms
    Run(np.array([FAILED, 8e-3, 4e-3, 2e-3]), np.array([1.0, 2.0, 3.0, 4.0])),
    Run(np.array([2.5e-3, 3e-3, 2e-3]), np.array([1.0, 1.0, 1.0])),  # no more schedules
    Run(np.array([8e-3, FAILED, FAILED, 4e-3]), np.array([1.0, 1.0, 1.0, 1.0])),
)


@pytest.fixture(scope="module")
def of():
    replays = Replays(read(CACHE), RUNS, 4)
    return {measure.key: measure.values(replays) for measure in measures(4, by_time=True)}


def test_the_best_so_far(of):
    np.testing.assert_allclose(of["fraction_4"], [1.0, 1.0, 0.5])


def test_checkpoints_end_with_the_last_evaluation():
    keys = [measure.key for measure in measures(100)]
    assert [key for key in keys if "fraction" in key] == [f"fraction_{n}" for n in (16, 64, 100)]


def test_evaluations_until_runs_are_near_the_optimum(of):
    np.testing.assert_array_equal(of["reached_99"], [True, True, False])
    np.testing.assert_array_equal(of["evaluations_to_99"], [4, 3, np.inf])
    np.testing.assert_array_equal(of["evaluations_to_95"], [4, 3, np.inf])


def test_performance_is_the_gain_over_random_draws(of):
    """Failures count as the slowest: until one ran there is no gain."""
    from tilewright.scheduler.replay.baseline import exact_baseline

    random = exact_baseline(read(CACHE).seconds, 4)
    best = np.array([[8, 8, 4, 2], [2.5, 2.5, 2, 2], [8, 8, 8, 4]]) / 1e3
    expected = ((random - best) / (random - 2e-3)).mean(axis=1)
    np.testing.assert_allclose(of["p"], expected)
    assert of["p"][0] < 0 < of["p"][1]


def test_time_is_what_was_recorded(of):
    """A schedule takes .212 s on average to compile and time, and four of them .85 s."""
    np.testing.assert_allclose(of["fraction_in_time_4"], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(of["seconds_to_99"], [10.0, 3.0, np.inf])


def test_the_mean_has_students_interval():
    """By hand: 12.706, the quantile of one degree of freedom, times 0.5."""
    found = mean(np.array([1.0, 2.0]))
    assert (found.value, found.low) == (1.5, pytest.approx(1.5 - 12.7062 * 0.5, abs=1e-3))
    assert mean(np.array([3.0])) == Estimate(3.0)


def test_a_share_has_wilsons_interval():
    """The example of 9 of 10 in Brown, Cai and DasGupta (2001): .596 to .982."""
    found = share(np.arange(10) < 9)
    assert (found.value, found.low, found.high) == pytest.approx((0.9, 0.596, 0.982), abs=1e-3)
    assert share(np.ones(10, dtype=bool)).high == pytest.approx(1.0)


def test_a_median_lies_between_order_statistics():
    """Of twenty the 6th and the 15th; five are too few for any."""
    values = np.arange(1.0, 21.0)
    values[18:] = np.inf
    assert median(values) == Estimate(10.5, 6.0, 15.0)
    assert median(np.arange(5.0)) == Estimate(2.0)
    assert median(np.array([1.0, np.inf, np.inf])).value == np.inf


def test_means_of_several_spaces_go_repeat_by_repeat():
    one = Replays(read(CACHE), RUNS, 4)
    other = Replays(read(CACHE), RUNS[::-1], 4)
    asked = [measure for measure in measures(4) if measure.key in ("fraction_4", "reached_99")]
    together = as_json("random", [one, other], Settings(4, 3, 1, 0), asked)["scores"]
    expected = mean(np.array([0.75, 1.0, 0.75]))
    assert together["fraction_4"] == pytest.approx(vars(expected))
    assert together["reached_99"]["value"] == pytest.approx(4 / 6)


def test_searches_are_compared_repeat_by_repeat():
    one, other = Replays(read(CACHE), RUNS, 4), Replays(read(CACHE), (RUNS[1],) * 3, 4)
    asked = [measure for measure in measures(4) if measure.key in ("fraction_4", "reached_99")]
    expected = mean(np.array([0.0, 0.0, -0.5]))
    assert differences([one], [other], asked) == {"fraction_4": expected}
