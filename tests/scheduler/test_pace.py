"""How a run's time is shared out, as plain arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.pace import COMPARISONS, LEAST_BATCH, RESERVE, WINDOW, Pace, Rate

CPU = COMPARISONS["cpu"]
FAST = Pace(seconds=60, call_seconds=2e-3, batch=16, final=CPU)
SLOW = Pace(seconds=60, call_seconds=0.2, batch=16, final=CPU)


def test_slow_candidates_come_in_small_batches() -> None:
    assert FAST.batch_size(None) == 16
    assert SLOW.batch_size(None) == LEAST_BATCH


def test_experience_replaces_expectation() -> None:
    assert FAST.batch_size(run=4.0) == LEAST_BATCH
    assert SLOW.batch_size(run=0.1) == 16


def test_many_compilers_are_kept_busy() -> None:
    pace = Pace(seconds=20, call_seconds=2e-3, batch=48, final=CPU)
    assert pace.batch_size(run=0.02) == 48
    assert pace.batch_size(run=4.0) == 12


def test_slow_finalists_are_few_but_two() -> None:
    assert FAST.comparable(elapsed=50, each=0.07, best=2e-3) == 8
    assert 2 < SLOW.comparable(elapsed=51, each=1.3, best=0.2) < 8
    assert SLOW.comparable(elapsed=59.9, each=1.5, best=0.2) == 2


def test_a_busy_machine_needs_more_time_to_compare() -> None:
    quiet, busy = (FAST.reserve(each, best=2e-3) for each in (0.08, 0.8))
    assert quiet < 8
    assert quiet < busy <= 30
    assert FAST.comparable(50, 1.0, 2e-3) < FAST.comparable(50, 0.07, 2e-3)


def test_the_rate_is_that_of_late() -> None:
    rate = Rate(3.0)
    assert (rate.each, rate.run) == (None, None)
    rate.note(5.0, 16, 0.8)
    assert (rate.each, rate.run) == (2.0 / 16, 0.05)
    for i in range(WINDOW):
        rate.note(6.0 + i, 10, 0.2)
    assert (rate.each, rate.run) == (0.1, pytest.approx(0.02))


seconds = st.floats(1, 1e4)


@settings(max_examples=100, deadline=None)
@given(
    seconds,
    st.floats(1e-6, 10),
    st.integers(4, 64),
    st.floats(1e-3, 1),
    st.none() | st.floats(1e-3, 100),
)
def test_what_is_started_is_expected_to_end_before_the_final_comparison(
    allowed: float, call: float, batch: int, share: float, each: float | None
) -> None:
    pace = Pace(allowed, call, batch, CPU)
    elapsed = share * allowed
    more = pace.affordable(elapsed, each, best=call)
    assert more >= 0
    assert LEAST_BATCH <= pace.batch_size(each) <= batch
    if each and more:
        end = elapsed + more * each
        assert end <= allowed
        assert allowed - end >= min(RESERVE * allowed, 8 * 0.7) - 1e-6
