import math

import pytest

from tilewright.measure.timing import (
    FINAL,
    call_limit,
    protocol_for,
    score,
    score_on_cpu,
    usual_score,
)


def test_the_score_is_the_least_sample():
    assert score([3e-3, 1e-3, 2e-3]) == 1e-3


@pytest.mark.parametrize("lucky", [0, 6])
def test_between_other_work_neither_luck_nor_disturbance_decides(lucky):
    """A quarter of the samples at most are so."""
    samples = [1e-3] * lucky + [2e-3] * (25 - 6 - lucky) + [9e-3] * 6
    assert usual_score(samples) == 2e-3


def test_one_sample_that_is_too_short_wins_no_comparison():
    """As a late clock makes it: of two kernels the second is faster by 2 percent."""
    lucky, faster = [0.9e-3] + [1.02e-3] * 24, [1e-3] * 25
    final = score_on_cpu("cpu", final=True, flushed=False)
    assert final(lucky) > final(faster)


def test_where_there_is_but_disturbance_the_least_sample_counts():
    for clock, is_final in (("cpu", False), ("wall", False), ("wall", True)):
        assert score_on_cpu(clock, is_final, flushed=False) is score
        assert score_on_cpu(clock, is_final, flushed=True) is usual_score


@pytest.mark.parametrize(
    ("work", "best", "seconds"),
    [
        (10**6, None, 1.0),
        (5 * 10**9, None, 5.0),
        (5 * 10**9, math.inf, 5.0),
        (5 * 10**9, 1e-3, 0.5),
        (5 * 10**9, 0.3, 3.0),
    ],
)
def test_a_call_is_hung_after_ten_times_the_best_or_the_time_of_scalar_code(work, best, seconds):
    assert call_limit(work, best) == pytest.approx(seconds)


def test_the_wall_clock_gets_more_samples_and_more_patience():
    cpu, wall = protocol_for("cpu", final=False), protocol_for("wall", final=False)
    assert wall.samples > cpu.samples
    assert wall.cold_seconds > cpu.cold_seconds
    assert protocol_for("wall", final=True) == protocol_for("cpu", final=True) == FINAL
