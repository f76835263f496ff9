"""A search that trusts what is known of others, and one beside it that knows nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tilewright.scheduler.strategies.evolutionary import Evolution, EvolutionarySearch
from tilewright.scheduler.strategies.exhaustive import ExhaustiveSearch
from tilewright.scheduler.strategies.search import Proposed, Search
from tilewright.scheduler.strategies.second_opinion import (
    LATEST,
    MISLED,
    MOST,
    TRIAL,
    SecondOpinion,
)
from tilewright.scheduler.testing.landscape import Guess, hills, knolls, trees
from tilewright.scheduler.testing.search import SearchContract
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space

BATCH = 8


def evolving(space: Space, seed: int = 0) -> EvolutionarySearch:
    return EvolutionarySearch(space, trees(space), Guess(), seed, Evolution(immigrants=128))


def away(space: Space, avoided: Sequence[Schedule], seed: int = 0) -> EvolutionarySearch:
    settings = Evolution(immigrants=128)
    return EvolutionarySearch(space, trees(space), Guess(), seed, settings, avoided=avoided)


def with_second(space: Space) -> SecondOpinion:
    """The second search shows itself by what it asks for: ``enumerated`` schedules."""
    return SecondOpinion(space, evolving(space), lambda avoided: ExhaustiveSearch(space))


def is_second(proposal: Proposed) -> bool:
    return proposal.origin == "enumerated"


class TestSecondOpinion(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return SecondOpinion(
            space, evolving(space, seed), lambda avoided: away(space, avoided, seed + 1)
        )


@pytest.mark.parametrize(
    ("faster", "share"), [(MISLED + 0.02, MOST), (MISLED - 0.02, TRIAL)], ids=["wrong", "right"]
)
def test_the_second_goes_on_if_its_trial_is_faster_than_the_prior_said(
    faster: float, share: int
) -> None:
    """By so much of the best speed; what it finds later changes nothing."""
    space, said = hills(), Guess()
    search = with_second(space)
    asked: list[Proposed] = []
    expected = np.zeros(0)
    while len(asked) < LATEST + MOST + BATCH:
        batch = search.ask(BATCH)
        asked += batch
        expected, _ = said.predict(space, space.rows([p.schedule for p in asked]))
        speed = np.where([*map(is_second, batch)], 10.0, 1.0)
        if len(asked) == LATEST + TRIAL:
            speed = expected[-TRIAL:] / expected.max() + faster
        search.tell([(p.schedule, 1.0 / s) for p, s in zip(batch, speed, strict=True)])
    assert [is_second(p) for p in asked[: LATEST + TRIAL]] == [False] * LATEST + [True] * TRIAL
    assert sum(map(is_second, asked)) == share


def test_the_second_stops_where_the_first_finds_what_shows_the_prior_right() -> None:
    """Its trial seemed fast beside all that was known by then."""
    search = with_second(hills())
    search.tell([(p.schedule, 1.0) for p in search.ask(LATEST)])
    search.tell([(p.schedule, 0.1) for p in search.ask(TRIAL)])
    batch = search.ask(2 * MOST)
    assert sum(map(is_second, batch)) == MOST - TRIAL
    search.tell([(p.schedule, 0.1 if is_second(p) else 1e-4) for p in batch])
    after = search.ask(BATCH)
    assert len(after) == BATCH
    assert not any(map(is_second, after))


def test_an_untold_trial_says_nothing() -> None:
    search = with_second(hills())
    search.tell([(p.schedule, 1.0) for p in search.ask(LATEST)])
    trial = search.ask(TRIAL)
    assert all(map(is_second, trial))
    search.tell([(p.schedule, 1.0) for p in trial[1:]])
    assert not any(map(is_second, search.ask(BATCH)))
    search.tell([(trial[0].schedule, 1.0)])
    assert all(map(is_second, search.ask(BATCH)))


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


class Wrong(Guess):
    """Thinks best what a guess thinks worst."""

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        mean, spread = super().predict(space, population)
        return 1.0 / mean, spread


def test_the_second_is_told_what_is_known_of_its_schedules_and_goes_on() -> None:
    """All of its trial was measured before, and is as fast as any."""
    space = hills()
    alone = evolving(space, seed=1)
    trial = [p.schedule for p in alone.ask(TRIAL)]
    alone.tell([(schedule, 1.0) for schedule in trial])
    then = alone.ask(BATCH)
    first = EvolutionarySearch(space, trees(space), Wrong(), 0, Evolution(immigrants=128))
    others = [p.schedule for p in first.ask(LATEST)]
    search = SecondOpinion(space, first, lambda avoided: evolving(space, seed=1))
    search.tell([(schedule, 1.0) for schedule in [*trial, *others]])
    assert search.ask(BATCH) == then


def test_nothing_is_asked_twice_while_results_are_awaited() -> None:
    space = knolls()
    search = with_second(space)
    told = [p.schedule for p in search.ask(LATEST)]
    search.tell([(schedule, 1.0) for schedule in told])
    rest = []
    while batch := search.ask(5):
        rest += [proposal.schedule for proposal in batch]
    assert sorted([*told, *rest], key=str) == sorted(space.enumerate(), key=str)


def begun(told: Sequence[tuple[Schedule, float | None]], space: Space) -> Sequence[Schedule]:
    """What the second is to be kept away from once all that is told."""
    given: list[Sequence[Schedule]] = []

    def begin(avoided: Sequence[Schedule]) -> Search:
        given.append(avoided)
        return evolving(space, seed=1)

    search = SecondOpinion(space, evolving(space), begin)
    search.tell(told)
    search.ask(BATCH)
    search.ask(BATCH)
    [avoided] = given
    return avoided


def test_the_second_is_kept_away_from_the_fastest_of_the_first() -> None:
    """Not from what a resumed run is told later, which the second may have found."""
    space = hills()
    asked = [p.schedule for p in evolving(space).ask(LATEST + 1)]
    seconds = [2.0] * LATEST + [0.5]
    seconds[5] = 1.0
    assert begun(list(zip(asked, seconds, strict=True)), space) == [asked[5]]


def test_where_all_failed_nothing_is_avoided() -> None:
    space = hills()
    assert begun([(p.schedule, None) for p in evolving(space).ask(LATEST)], space) == []
