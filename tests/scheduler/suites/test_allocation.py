"""Which task gets the next unit of trials."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tilewright.scheduler.suites.allocation import (
    ALPHA,
    BETA,
    CONTENDERS,
    WINDOW,
    TaskStats,
    by_gradient,
    by_part,
    equally,
    gradient,
    in_turn,
)
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.tuning.pace import Worth


def task(slope=1.0, flops=0, kind="a", units=10, seconds=1.0, latencies=(1.0,)) -> TaskStats:
    return TaskStats(slope, flops, kind, units, seconds, latencies)


seconds = st.floats(1e-6, 10.0)


@st.composite
def standings(draw) -> TaskStats:
    """A task some way through, whose latency never rose."""
    falling = sorted(draw(st.lists(seconds, min_size=1, max_size=WINDOW + 1)), reverse=True)
    unknown = draw(st.integers(0, len(falling)))
    return TaskStats(
        slope=draw(st.floats(0.01, 1e3)),
        flops=draw(st.integers(0, 10**12)),
        kind=draw(st.sampled_from("ab")),
        units=draw(st.integers(0, 40)),
        seconds=draw(seconds),
        latencies=(*[None] * unknown, *falling[unknown:]),
    )


tuned = standings().filter(lambda t: t.units > 0 and t.latency is not None)
several = st.lists(standings(), min_size=1, max_size=6)
every_allocation = pytest.mark.parametrize("allocation", [by_gradient, in_turn])


@every_allocation
@given(tasks=several)
def test_every_task_has_its_place(allocation, tasks):
    assert sorted(allocation(tasks)) == list(range(len(tasks)))


@every_allocation
@given(tasks=several, factor=st.sampled_from([0.125, 2.0, 1024.0]))
def test_the_unit_of_weights_does_not_matter(allocation, tasks, factor):
    scaled = [replace(t, slope=factor * t.slope) for t in tasks]
    assert allocation(scaled) == allocation(tasks)


@given(tasks=st.lists(tuned, min_size=2, max_size=6), data=st.data())
def test_the_order_of_the_tasks_does_not_matter(tasks, data):
    """But where two tasks are worth the same."""
    shuffled = data.draw(st.permutations(tasks))
    first, other = tasks[by_gradient(tasks)[0]], shuffled[by_gradient(shuffled)[0]]
    best = [max(t.flops / t.latency for t in tasks if t.kind == x.kind) for x in (first, other)]
    gains = [gradient(first, best[0]) / first.seconds, gradient(other, best[1]) / other.seconds]
    assert gains[0] == gains[1]


@given(tasks=several)
def test_each_gets_one_unit_before_any_gets_a_second(tasks):
    if new := [i for i, t in enumerate(tasks) if not t.units]:
        assert by_gradient(tasks)[: len(new)] == new


@given(tasks=several, factor=st.floats(1.0, 100.0))
def test_more_weight_never_costs_a_task_its_turn(tasks, factor):
    first = by_gradient(tasks)[0]
    heavier = [replace(t, slope=factor * t.slope) if i == first else t for i, t in enumerate(tasks)]
    assert by_gradient(heavier)[0] == first


@given(t=standings(), fastest=st.floats(1.0, 1e15))
def test_nothing_is_expected_to_become_worse(t, fastest):
    assume(t.units and t.latency is not None)
    assert gradient(t, fastest) <= 0.0


def test_the_formula():
    """By hand, from section 6 of the paper."""
    falling = task(slope=3.0, flops=100, units=8, latencies=(5.0, 4.0, 4.0, 2.0))
    ahead_by_own_time = -2.0 / 8
    behind = (2.0 - 5.0) / WINDOW
    expected = 3.0 * (ALPHA * behind + (1 - ALPHA) * ahead_by_own_time)
    assert gradient(falling, fastest=1.0) == pytest.approx(expected)
    ahead_by_the_others = BETA * 100 / 500 - 2.0
    expected = 3.0 * (ALPHA * behind + (1 - ALPHA) * ahead_by_the_others)
    assert gradient(falling, fastest=500.0) == pytest.approx(expected)


def test_before_there_is_a_window_only_what_is_hoped_counts():
    short = task(units=2, latencies=(5.0, 2.0))
    assert gradient(short, fastest=0.0) == pytest.approx((1 - ALPHA) * -2.0 / 2)
    unknown = task(units=4, latencies=(None, 4.0, 3.0, 2.0))
    assert gradient(unknown, fastest=0.0) == pytest.approx((1 - ALPHA) * -2.0 / 4)


def test_what_costs_the_most_in_all_comes_first():
    rare, often = task(slope=1.0, latencies=(3.0,)), task(slope=10.0, latencies=(1.0,))
    assert by_gradient([rare, often]) == [1, 0]


def test_what_gains_as_much_in_less_time_comes_first():
    large, small = task(seconds=2.0), task(seconds=1.0)
    assert by_gradient([large, small]) == [1, 0]


def test_what_has_gained_lately_comes_before_what_has_not():
    idle = task(latencies=(1.0, 1.0, 1.0, 1.0))
    gaining = task(latencies=(4.0, 3.0, 2.0, 1.0))
    assert by_gradient([idle, gaining]) == [1, 0]


def test_what_lags_behind_its_kind_comes_first():
    swift = task(flops=1000, latencies=(1.0,))
    lame = task(flops=100, latencies=(1.0,))
    other = task(flops=100, latencies=(1.0,), kind="b")
    assert by_gradient([swift, other, lame]) == [2, 0, 1]


def test_what_others_reach_promises_nothing_to_a_task_that_has_stalled():
    """Or it would get all trials for ever."""
    swift = task(flops=1000, units=10, latencies=(1.0,))
    stalled = task(flops=100, units=11, latencies=(1.0, 0.999, 0.999, 0.999))
    assert by_gradient([swift, stalled]) == [0, 1]
    gaining = replace(stalled, latencies=(1.1, 1.1, 1.1, 1.0))
    assert by_gradient([swift, gaining]) == [1, 0]


def test_trials_without_a_gain_make_a_task_wait():
    tried, fresh = task(units=30), task(units=3)
    assert by_gradient([tried, fresh]) == [1, 0]


def test_a_task_without_a_right_kernel_gets_its_equal_share_and_no_more():
    right = task(units=10)
    assert by_gradient([right, task(units=4, latencies=(None,))])[0] == 1
    assert by_gradient([right, task(units=11, latencies=(None,))])[0] == 0


@settings(max_examples=25)
@given(weights=st.lists(st.floats(0.1, 10.0), min_size=2, max_size=5))
def test_latencies_that_never_fall_share_trials_by_what_they_cost(weights):
    """Then the gradient is that of -w g / t: the units follow the weights."""
    units = [0] * len(weights)
    for _ in range(400):
        tasks = [
            task(slope=w, units=t, latencies=(1.0,) * (WINDOW + 1))
            for w, t in zip(weights, units, strict=True)
        ]
        units[by_gradient(tasks)[0]] += 1
    for weight, got in zip(weights, units, strict=True):
        assert got == pytest.approx(400 * weight / sum(weights), abs=len(weights))


def test_equal_shares():
    units = [0, 0, 0]
    for _ in range(30):
        units[in_turn([task(slope=9.0**i, units=u) for i, u in enumerate(units)])[0]] += 1
    assert units == [10, 10, 10]


def times(parts):
    return [worth.times for worth in by_part(parts)]


def test_finalists_go_by_the_parts_of_the_objective():
    assert times([6.0, 2.0]) == [1.5, 0.5]
    assert times([6.0, 2.0, None]) == [1.5, 0.5, 1.0]
    assert times([None]) == [1.0]


def test_a_share_of_what_is_right_is_compared_but_not_in_equal_shares():
    assert {worth.share for worth in by_part([6.0, 2.0, None])} == {CONTENDERS}
    assert equally([6.0, 2.0, None]) == [Worth()] * 3


@given(parts=st.lists(st.none() | st.floats(1e-6, 1e6), max_size=6))
def test_there_are_as_many_finalists_as_usual_in_all(parts):
    assert sum(times(parts)) == pytest.approx(len(parts))


def test_the_sum_of_latencies():
    latency = Objective.LATENCY
    assert latency.evaluate([2.0, 3.0], [0.1, 0.2], [None, None]) == pytest.approx(0.8)
    assert latency.evaluate([2.0, 3.0], [0.1, None], [0.1, 0.2]) is None
    assert latency.slope(2.0, 0.1) == 2.0
    assert latency.better(0.1, 0.2)


def test_the_mean_of_speedups():
    speedup = Objective.SPEEDUP
    assert speedup.evaluate([1.0, 1.0], [0.1, 0.1], [0.2, 0.8]) == pytest.approx(4.0)
    assert speedup.evaluate([3.0, 1.0], [0.1, 0.1], [0.2, 0.8]) == pytest.approx(8.0**0.5)
    assert speedup.evaluate([1.0, 1.0], [0.1, 0.1], [0.2, None]) is None
    assert speedup.evaluate([1.0, 1.0], [0.1, None], [0.2, 0.8]) is None
    assert speedup.better(2.0, 1.0)


@given(weights=st.lists(st.floats(0.1, 10), min_size=3, max_size=3), latency=seconds)
def test_slopes_are_derivatives(weights, latency):
    """Up to the factor that all tasks share."""
    others, library, step = [0.5, 2.0], [1.0, 1.0, 1.0], 1e-6 * latency
    for objective in Objective:
        low, high = (
            objective.evaluate(weights, [latency + d, *others], library) for d in (-step, step)
        )
        value = objective.evaluate(weights, [latency, *others], library)
        factor = 1.0 if objective is Objective.LATENCY else -value / sum(weights)
        slope = objective.slope(weights[0], latency)
        assert (high - low) / (2 * step) == pytest.approx(factor * slope, rel=1e-3)
