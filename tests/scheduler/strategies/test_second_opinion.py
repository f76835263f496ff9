"""A search that trusts what is known of others, and one beside it that knows nothing."""

from __future__ import annotations

import pytest

from scheduler.strategies.evolutionary import Evolution, EvolutionarySearch
from scheduler.strategies.exhaustive import ExhaustiveSearch
from scheduler.strategies.search import Proposed, Search
from scheduler.strategies.second_opinion import CLOSE, LATEST, MOST, TRIAL, SecondOpinion
from scheduler.testing.landscape import Guess, hills, knolls, trees
from scheduler.testing.search import SearchContract, drive, outcome
from spaces.space import Space

BATCH = 8


def evolving(space: Space, seed: int = 0) -> EvolutionarySearch:
    return EvolutionarySearch(space, trees(space), Guess(), seed, Evolution(immigrants=128))


def with_second(space: Space) -> SecondOpinion:
    """The second search shows itself by what it asks for: ``enumerated`` schedules."""
    return SecondOpinion(space, evolving(space), ExhaustiveSearch(space))


def is_second(proposal: Proposed) -> bool:
    return proposal.origin == "enumerated"


class TestSecondOpinion(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return SecondOpinion(space, evolving(space, seed), evolving(space, seed + 1))


@pytest.mark.parametrize(
    ("slower", "share"), [(0.99 / CLOSE, MOST), (1.01 / CLOSE, TRIAL)], ids=["close", "far"]
)
def test_the_second_goes_on_if_it_comes_close(slower: float, share: int) -> None:
    search = with_second(hills())
    asked: list[Proposed] = []
    while len(asked) < LATEST + MOST + BATCH:
        batch = search.ask(BATCH)
        search.tell([(p.schedule, slower if is_second(p) else 1.0) for p in batch])
        asked += batch
    assert [is_second(p) for p in asked[: LATEST + TRIAL]] == [False] * LATEST + [True] * TRIAL
    assert sum(map(is_second, asked)) == share


def test_one_that_fails_has_its_trial_and_no_more() -> None:
    search = with_second(hills())
    seconds = 0
    for _ in range(10):
        batch = search.ask(BATCH)
        search.tell([(p.schedule, None if is_second(p) else 1.0) for p in batch])
        seconds += sum(map(is_second, batch))
    assert seconds == TRIAL


def test_a_large_batch_is_shared() -> None:
    search = with_second(hills())
    search.tell([(p.schedule, 1.0) for p in search.ask(64)])
    assert [is_second(p) for p in search.ask(64)] == [True] * TRIAL + [False] * (64 - TRIAL)


def test_the_second_is_told_what_is_known_of_its_schedules_and_goes_on() -> None:
    space = hills()
    alone = evolving(space, seed=1)
    first, then = drive(alone, 2, BATCH), alone.ask(BATCH)
    search = SecondOpinion(space, evolving(space), evolving(space, seed=1))
    search.tell([(schedule, outcome(schedule)) for schedule in first])
    others = [s for s in space.enumerate() if s not in {*first, *(p.schedule for p in then)}]
    search.tell([(schedule, outcome(schedule)) for schedule in others[: LATEST - len(first)]])
    assert search.ask(BATCH)[: MOST - TRIAL] == then


def test_nothing_is_asked_twice_while_results_are_awaited() -> None:
    space = knolls()
    search = with_second(space)
    told = [p.schedule for p in search.ask(LATEST)]
    search.tell([(schedule, 1.0) for schedule in told])
    rest = []
    while batch := search.ask(5):
        rest += [proposal.schedule for proposal in batch]
    assert sorted([*told, *rest], key=str) == sorted(space.enumerate(), key=str)
