"""How a run's time is shared out, as plain arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.measure.executor import LAST_WAIT
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.scheduler.tuning import pace as pacing
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.pace import (
    CUDA,
    LEAST_BATCH,
    RESERVE,
    WINDOW,
    Expected,
    Pace,
    Rate,
    Worth,
)
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule

CPU, expected = pacing.CPU.comparison, pacing.CPU.expected
LATE = Budget(1, 60).overtime
FAST = Pace(60, Expected(2e-3), batch=16, final=CPU)
SLOW = Pace(60, Expected(0.2), batch=16, final=CPU)


def test_slow_candidates_come_in_small_batches() -> None:
    assert FAST.batch_size(None) == 16
    assert SLOW.batch_size(None) == LEAST_BATCH


def test_experience_replaces_expectation() -> None:
    assert FAST.batch_size(run=4.0) == LEAST_BATCH
    assert SLOW.batch_size(run=0.1) == 16


def test_as_many_more_are_asked_for_as_run_side_by_side() -> None:
    pace = Pace(seconds=20, expected=Expected(2e-3), batch=48, final=CPU)
    assert pace.batch_size(run=0.1) == 16
    assert pace.batch_size(run=0.1, devices=2) == 32


def test_many_compilers_are_kept_busy() -> None:
    pace = Pace(seconds=20, expected=Expected(2e-3), batch=48, final=CPU)
    assert pace.batch_size(run=0.02) == 48
    assert pace.batch_size(run=4.0) == 12


def test_slow_finalists_are_few_but_two() -> None:
    assert FAST.comparable(left=10, late=LATE, each=0.07, best=2e-3) == 8
    assert 2 < SLOW.comparable(left=9, late=LATE, each=1.3, best=0.2) < 8
    assert SLOW.comparable(left=0.1, late=LATE, each=1.5, best=0.2) == 2


@pytest.mark.parametrize(
    ("sizes", "call", "each", "seconds", "most"),
    [
        ("m=512 n=512 k=512", 2e-3, 0.08, 5, 0.8),
        ("m=512 n=512 k=512", 2e-3, 0.08, 60, 3.7),
        ("m=2039 n=2039 k=2039", 0.2, 1.6, 15, 5.0),
    ],
)
def test_a_comparison_gets_what_its_samples_take_and_the_search_the_rest(
    sizes: str, call: float, each: float, seconds: float, most: float
) -> None:
    pace = Pace(seconds, expected(workload(f"matmul {sizes}"), call), 16, CPU)
    reserve = pace.reserve(each, call)
    assert 2 * 25 * min(call, 0.024) < reserve < most
    assert pace.comparable(reserve, LATE, each, call) >= 2


def test_what_is_worth_more_gets_more_finalists_and_time_for_them() -> None:
    long = Pace(600, Expected(2e-3), batch=16, final=CPU)
    times = (1.0, 3.0, 0.01)
    usual, much, little = (long.reserve(0.07, 2e-3, Worth(each)) for each in times)
    assert little < usual < much
    assert much == long.comparing(24, 0.07, 2e-3) > 24 / 8 * 0.9 * usual
    for each, most in zip(times, (8, 24, 2), strict=True):
        assert long.comparable(60, LATE, 0.07, 2e-3, Worth(each)) == most
    assert long.affordable(60, 0.07, 2e-3, Worth(3.0)) < long.affordable(60, 0.07, 2e-3)
    assert FAST.reserve(1e3, 2e-3, Worth(7.0)) <= 30


def test_a_share_of_all_that_is_right_is_compared_as_far_as_there_is_time() -> None:
    long, worth = Pace(600, Expected(2e-3), batch=16, final=CPU), Worth(1.0, 1 / 16)
    for right, most in ((100, 8), (1600, 100)):
        assert long.comparable(90, LATE, 0.07, 2e-3, worth, right) == most
    reserves = [long.reserve(0.07, 2e-3, worth, right) for right in (100, 1600, 160_000)]
    assert reserves[0] == long.reserve(0.07, 2e-3)
    assert reserves[1] == long.comparing(100, 0.07, 2e-3) > 100 / 8 * 0.9 * reserves[0]
    assert reserves[2] == RESERVE * 600
    assert long.comparable(reserves[1], LATE, 0.07, 2e-3, worth, 1600) in (99, 100)
    assert long.affordable(60, 0.07, 2e-3, worth, 1600) < long.affordable(60, 0.07, 2e-3)


def test_a_comparison_that_cannot_end_is_not_begun() -> None:
    heavy = Pace(60, Expected(0.1, setup=8.0), batch=16, final=CPU)
    assert heavy.comparable(left=3, late=LATE, each=None, best=0.1) == 0
    assert FAST.comparable(left=-5, late=LATE, each=0.07, best=2e-3) == 0


def test_candidates_that_end_late_leave_time_to_compare_two() -> None:
    assert FAST.comparable(left=-0.1, late=LATE, each=0.07, best=2e-3) == 2


@pytest.mark.parametrize("seconds", [1, 5, 15, 20, 60, 600])
def test_late_comparisons_leave_the_program_time_to_start_and_to_end(seconds: int) -> None:
    """Of the ten percent, or two seconds, within which a run's time is kept."""
    left = max(0.1 * seconds, 2) - Budget(1, seconds).overtime
    assert left >= LAST_WAIT + 0.25


def test_a_short_run_on_a_gpu_reserves_what_a_comparison_of_long_calls_takes() -> None:
    """Of kernels of 2.7 ms an H200 measured 11 at a time in 0.17 seconds each, and compared two in
    1.33 seconds."""
    work = workload("matmul m=4096 n=28672 k=8192 dtype=bfloat16")
    pace = Pace(5, CUDA.expected(work, 2.4e-3), batch=48, final=CUDA.comparison)
    assert 0.1 < pace.expected.candidate < 0.25
    assert 1.33 < pace.reserve(each=0.17, best=2.4e-3) <= 2.5
    assert pace.comparable(left=1.14, late=1.5, each=0.17, best=2.4e-3) == 2


def test_many_short_calls_on_a_gpu_are_compared_in_little_time() -> None:
    """Of kernels of 40 us an H200 compared five in 0.25 seconds, all in all."""
    work = workload("matmul m=64 n=10240 k=8192 dtype=bfloat16")
    pace = Pace(10, CUDA.expected(work, 4e-5), batch=48, final=CUDA.comparison)
    reserve = pace.reserve(each=0.05, best=4e-5)
    assert 1 < reserve < 2.5
    assert pace.comparable(left=reserve, late=LATE, each=0.05, best=4e-5) > 24


def test_a_busy_machine_needs_more_time_to_compare() -> None:
    quiet, busy = (FAST.reserve(each, best=2e-3) for each in (0.08, 0.8))
    assert quiet < 8
    assert quiet < busy <= 30
    assert FAST.comparable(10, LATE, 1.0, 2e-3) < FAST.comparable(10, LATE, 0.07, 2e-3)


HUGE = workload("matmul m=11585 n=11585 k=8")


def test_large_outputs_take_time_to_check() -> None:
    small = expected(workload("matmul m=512 n=512 k=512"), 1e-3)
    assert small.setup < 0.05
    assert small.candidate < 0.08
    huge = expected(HUGE, 0.1)
    assert 5 < huge.setup < 15
    assert 1.5 < huge.candidate < 4
    assert CUDA.expected(HUGE, 1e-3).setup < 1


def test_a_deep_product_takes_time_to_work_out() -> None:
    assert expected(workload("matmul m=8192 n=8192 k=8192"), 10.0).setup > 50


@pytest.mark.parametrize(("seconds", "elapsed", "first"), [(10, 1, 1), (15, 1, 2), (12, 1, 1)])
def test_where_time_is_short_one_or_two_are_better_than_none(
    seconds: float, elapsed: float, first: int
) -> None:
    pace = Pace(seconds, expected(HUGE, 0.1), batch=16, final=CPU)
    assert pace.affordable(seconds - elapsed, None, None) == 0
    assert pace.first(seconds - elapsed) == first


def test_what_a_batch_is_set_up_with_is_part_of_the_reserve() -> None:
    plain = Pace(60, Expected(0.1), batch=16, final=CPU)
    heavy = Pace(60, Expected(0.1, setup=8.0), batch=16, final=CPU)
    assert heavy.reserve(None, None) > plain.reserve(None, None)
    assert heavy.affordable(60, None, None) < plain.affordable(60, None, None)
    assert heavy.comparable(10, LATE, None, 0.1) < plain.comparable(10, LATE, None, 0.1)


def measured(count: int, run: float, build: float) -> list[Measurement]:
    schedule = Schedule("any", ())
    return [
        Measurement(schedule, Status.OK, 1.0, run_seconds=run, build_seconds=build)
        for _ in range(count)
    ]


def test_the_rate_is_that_of_late() -> None:
    rate = Rate()
    assert (rate.each, rate.run, rate.work) == (None, None, None)
    rate.note(2.0, measured(16, run=0.05, build=0.2))
    found = (rate.each, rate.run, rate.work)
    assert found == (2.0 / 16, pytest.approx(0.05), pytest.approx(0.25))
    for _ in range(WINDOW):
        rate.note(1.0, measured(10, run=0.02, build=0.1))
    assert (rate.each, rate.run, rate.work) == (0.1, pytest.approx(0.02), pytest.approx(0.12))


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
    pace = Pace(allowed, Expected(call), batch, CPU)
    elapsed = share * allowed
    more = pace.affordable(allowed - elapsed, each, best=call)
    assert more >= 0
    assert LEAST_BATCH <= pace.batch_size(each) <= batch
    if each and more:
        end = elapsed + more * each
        assert end <= allowed
        assert allowed - end >= min(RESERVE * allowed, 8 * CPU.finalist(call)) - 1e-6


def test_time_is_kept_to_evaluate_all_rows_of_a_large_program() -> None:
    call = 1e-2
    small, large = (
        Pace(60, expected(workload(text), call), 16, CPU)
        for text in ("softmax r=64 c=100", "softmax r=4096 c=4096")
    )
    assert small.expected.last == 0
    assert 3 < large.expected.last < 15
    assert large.expected.setup < 2
    assert large.reserve(None, call) - small.reserve(None, call) > large.expected.last
    on_gpu = pacing.CUDA.expected(workload("softmax r=4096 c=4096"), 1e-4)
    assert 0.1 < on_gpu.last < 1  # draws, and leaves the rest to the device
    assert pacing.CUDA.expected(workload("matmul m=4096 n=4096 k=4096"), 1e-4).last == 0
