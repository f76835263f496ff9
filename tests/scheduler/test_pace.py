"""How a run's time is shared out, as plain arithmetic."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.pace import COMPARISONS, LEAST_BATCH, RESERVE, Pace

CPU = COMPARISONS["cpu"]
FAST = Pace(seconds=60, call_seconds=2e-3, batch=16, final=CPU)
SLOW = Pace(seconds=60, call_seconds=0.2, batch=16, final=CPU)


def test_slow_candidates_come_in_small_batches() -> None:
    assert FAST.batch_size(0, 0) == 16
    assert SLOW.batch_size(0, 0) == LEAST_BATCH


def test_experience_replaces_expectation() -> None:
    assert FAST.batch_size(elapsed=40, trials=10) == LEAST_BATCH
    assert SLOW.batch_size(elapsed=4, trials=40) == 16


def test_slow_finalists_are_few_but_two() -> None:
    assert FAST.comparable(elapsed=50, trials=700, best=2e-3) == 8
    assert 2 < SLOW.comparable(elapsed=51, trials=40, best=0.2) < 8
    assert SLOW.comparable(elapsed=59.9, trials=40, best=0.2) == 2


def test_a_busy_machine_needs_more_time_to_compare() -> None:
    quiet, busy = (FAST.reserve(elapsed=40, trials=n, best=2e-3) for n in (500, 50))
    assert quiet < 8
    assert quiet < busy <= 30
    assert FAST.comparable(50, 50, 2e-3) < FAST.comparable(50, 700, 2e-3)


seconds = st.floats(1, 1e4)


@settings(max_examples=100, deadline=None)
@given(seconds, st.floats(1e-6, 10), st.integers(4, 64), st.floats(1e-3, 1), st.integers(0, 500))
def test_what_is_started_is_expected_to_end_before_the_final_comparison(
    allowed: float, call: float, batch: int, share: float, trials: int
) -> None:
    pace = Pace(allowed, call, batch, CPU)
    elapsed = share * allowed
    more = pace.affordable(elapsed, trials, best=call)
    assert more >= 0
    assert LEAST_BATCH <= pace.batch_size(elapsed, trials) <= batch
    if trials and more:
        end = elapsed + more * elapsed / trials
        assert end <= allowed
        assert allowed - end >= min(RESERVE * allowed, 8 * 0.7) - 1e-6
