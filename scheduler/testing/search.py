"""Tests that every search must pass. Inherit, and say how to make one."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest

from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.testing.landscape import hills, hills_latency, knolls
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

ORIGINS = {"random", "immigrant", "starter", "neighbour", "child", "enumerated"}
Results = list[tuple[Schedule, float | None]]


def outcome(schedule: Schedule) -> float | None:
    """Return the latency of a made-up machine on which packing nothing with long panels fails."""
    if schedule["pack"] == "none" and schedule["kc"] == 256:
        return None
    return hills_latency(schedule.values)


def ask(search: Search, count: int) -> list[Schedule]:
    """Return the schedules that a search asks for."""
    return [proposed.schedule for proposed in search.ask(count)]


def drive(search: Search, rounds: int, count: int) -> list[Schedule]:
    """Ask and tell some rounds; all schedules asked for."""
    asked: list[Schedule] = []
    for _ in range(rounds):
        batch = ask(search, count)
        asked += batch
        search.tell([(schedule, outcome(schedule)) for schedule in batch])
    return asked


class SearchContract(ABC):
    """Tests of ``scheduler.strategies.search.Search``."""

    @abstractmethod
    def make(self, space: Space, seed: int) -> Search:
        """Return a fresh search."""

    @pytest.fixture
    def space(self) -> Space:
        return hills()

    def test_asks_for_valid_schedules_and_never_twice(self, space: Space) -> None:
        asked = drive(self.make(space, 0), rounds=6, count=16)
        assert len(asked) == 96
        assert len(set(asked)) == 96
        assert all(schedule in space for schedule in asked)

    def test_says_where_each_is_from_and_what_it_expects(self, space: Space) -> None:
        search = self.make(space, 0)
        for _ in range(2):
            asked = search.ask(16)
            for proposed in asked:
                assert proposed.origin in ORIGINS
                assert (proposed.mean is None) == (proposed.spread is None)
                if proposed.mean is not None and proposed.spread is not None:
                    assert isinstance(proposed.mean, float)
                    assert proposed.spread >= 0
            search.tell([(p.schedule, outcome(p.schedule)) for p in asked])

    def test_never_asks_twice_before_results_are_told(self, space: Space) -> None:
        search = self.make(space, 0)
        asked = [schedule for _ in range(4) for schedule in ask(search, 8)]
        assert len(set(asked)) == 32

    def test_same_seed_and_results_give_the_same_asks(self, space: Space) -> None:
        first = drive(self.make(space, 7), rounds=4, count=16)
        assert drive(self.make(space, 7), rounds=4, count=16) == first

    def test_order_of_telling_does_not_matter(self, space: Space) -> None:
        forwards, backwards = self.make(space, 3), self.make(space, 3)
        for _ in range(4):
            batch = ask(forwards, 16)
            assert ask(backwards, 16) == batch
            results: Results = [(schedule, outcome(schedule)) for schedule in batch]
            forwards.tell(results)
            for result in reversed(results):
                backwards.tell([result])

    def test_goes_on_from_a_log_as_if_never_stopped(self, space: Space) -> None:
        whole = self.make(space, 5)
        asked = drive(whole, rounds=3, count=16)
        resumed = self.make(space, 5)
        resumed.tell([(schedule, outcome(schedule)) for schedule in asked])
        assert ask(resumed, 16) == ask(whole, 16)

    def test_does_not_ask_for_what_it_was_told(self) -> None:
        space = knolls()
        told = list(space.enumerate())[::2]
        search = self.make(space, 0)
        search.tell([(schedule, outcome(schedule)) for schedule in told])
        assert not set(ask(search, space.count())) & set(told)

    @pytest.mark.parametrize("count", [3, 20, 1000])
    def test_exhausts_the_space(self, count: int) -> None:
        space = knolls()
        search, asked = self.make(space, 1), list[Schedule]()
        while batch := ask(search, count):
            assert len(batch) <= count
            search.tell([(schedule, outcome(schedule)) for schedule in batch])
            asked += batch
        assert len(asked) == space.count()
        assert set(asked) == set(space.enumerate())

    def test_goes_on_when_all_fail(self, space: Space) -> None:
        search = self.make(space, 2)
        for _ in range(3):
            batch = ask(search, 16)
            assert len(batch) == 16
            search.tell([(schedule, None) for schedule in batch])

    def test_ignores_results_of_other_spaces(self, space: Space) -> None:
        plain, told = self.make(space, 4), self.make(space, 4)
        told.tell([(Schedule("unknown", (("rows", 1),)), 1e-9)])
        assert ask(told, 16) == ask(plain, 16)
