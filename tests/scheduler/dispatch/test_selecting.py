"""The selection of kernels is as good as trying all of them."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.selecting import LEAST_GAIN, select
from tilewright.scheduler.dispatch.serving import Extra, Times, choices, extra_for, serving_seconds
from tilewright.spaces.target import detect_target

TARGET = detect_target("cpu")
EXTRA = Extra(0.01, 0.05, 0.001)


def value(regrets, plans, weights, kernels):
    """The expected regret where these kernels are open, and what the kernels must save."""
    usable = [n for n, plan in enumerate(plans) if set(plan) <= set(kernels)]
    if not usable:
        return np.inf
    return float(regrets[usable].min(axis=0) @ weights) + LEAST_GAIN * len(kernels)


@settings(deadline=None, max_examples=60)
@given(
    kernels=st.integers(1, 5),
    sizes=st.integers(1, 6),
    count=st.integers(1, 4),
    torch=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_other_selection_is_better(kernels, sizes, count, torch, seed):
    rng = np.random.default_rng(seed)
    numbers = range(kernels)
    plans = [list(each) for each in chain(*(combinations(numbers, n) for n in (1, 2)))]
    plans += [[]] * torch
    regrets = rng.choice([0.0, 0.1, 0.5, 2.0], (len(plans), sizes)) + rng.random(
        (len(plans), sizes)
    )
    weights = rng.random(sizes)
    weights /= weights.sum()
    found = select(regrets, plans, weights, count)
    assert len(found) <= count
    every = chain(*(combinations(numbers, n) for n in range(count + 1)))
    least = min(value(regrets, plans, weights, each) for each in every)
    assert value(regrets, plans, weights, found) <= least + 1e-6


def by_recursion(rows: int, seconds, opened) -> float:
    """The least time of a call, as its definition says. Kernels of the sizes ``opened`` take a
    tenth of a second a row."""
    if rows == 0:
        return 0.0

    def alone(size: int, own: float) -> float:
        copied = own + EXTRA.copy + EXTRA.row * (size + rows)
        return min(copied, rows / 10) if size in opened else copied

    return min(
        own + EXTRA.piece + by_recursion(rows - size, seconds, opened)
        if size <= rows
        else alone(size, own)
        for size, own in seconds.items()
    )


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(st.integers(1, 9), st.floats(0.1, 9), min_size=1, max_size=3),
    st.sets(st.integers(1, 9)),
)
def test_serving_takes_the_least_time(seconds, opened):
    sets = [tuple(sorted(seconds)), (min(seconds),)]
    times = Times(seconds, {size: [rows / 10 for rows in range(size + 1)] for size in opened})
    found = serving_seconds(sets, times, 12, EXTRA)
    for place, each in enumerate(sets):
        own = {size: seconds[size] for size in each}
        for rows in range(1, 13):
            least = by_recursion(rows, own, opened)
            if rows in own:
                least = min(least, own[rows])
            assert np.isclose(found[place, rows], least)


def test_the_kernel_of_the_size_itself_and_the_largest_of_equal_ones_are_chosen():
    found = choices([1, 4, 8], Times({1: 1.0, 4: 1.5, 8: 3.0}), 17, EXTRA)
    assert found[1:] == [1, 4, 4, 4, 4, *[8] * 12]


def test_weights_come_from_memory_in_each_piece():
    """A product's records are made on arrays in a cache; those of large rows are not."""
    profile = as_profile("1-64:1")
    product = extra_for(family_of("matmul n=512 k=256", "m", profile), 64, TARGET)
    rows = extra_for(family_of("softmax c=262144", "r", profile), 64, TARGET)
    assert product.shared * 1e9 > 512 * 256 * 4 / 1e3  # at most a terabyte a second
    assert rows.shared == 0
    assert product.seconds(0.0) == product.shared
    assert product.shared + 1e-5 > product.seconds(1e-5) > max(product.shared, 1e-5)
