"""One replayed run: what the search is asked, told and charged."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scheduler.replay.toys import hilly
from tilewright.scheduler.replay.run import replay
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.registry import factory


class Listening(RandomSearch):
    """Remembers how many it was asked for, and what it was told."""

    def __init__(self, space, seed=0):
        super().__init__(space, seed)
        self.asked, self.told = [], []

    def ask(self, count):
        self.asked.append(count)
        return super().ask(count)

    def tell(self, results):
        self.told += results
        super().tell(results)


def test_a_search_is_told_what_was_recorded_failures_included():
    recording = hilly()
    search = Listening(recording.space)
    run = replay(recording, search, 100, 8)
    assert search.asked == [8] * 12 + [4]
    assert [seconds for _, seconds in search.told] == [
        recording.outcomes[schedule].seconds for schedule, _ in search.told
    ]
    assert [s is None for _, s in search.told] == list(np.isinf(run.seconds))
    assert 0 < np.isinf(run.seconds).sum() < 100
    np.testing.assert_array_equal(run.costs, 0.5)


def test_a_run_ends_when_all_schedules_are_known():
    recording = hilly()
    run = replay(recording, factory("exhaustive")(recording.space, 0), 10_000, 64)
    assert sorted(run.seconds) == sorted(recording.seconds)


@pytest.mark.parametrize("name", ["random", "evolutionary"])
def test_the_same_seed_gives_the_same_run(name):
    recording = hilly()
    first, second, other = (
        replay(recording, factory(name)(recording.space, seed), 24, 8).seconds for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_the_products_search_finds_the_best_of_a_smooth_space():
    recording = hilly()
    run = replay(recording, factory("evolutionary")(recording.space, 0), 128, 8)
    assert run.seconds.min() == recording.optimum
