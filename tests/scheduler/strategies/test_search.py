"""Searches: the contract, and that evolution finds more than chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import XGBoostModel
from tilewright.scheduler.strategies import evolutionary as evolutionary_module
from tilewright.scheduler.strategies.evolutionary import Evolution, EvolutionarySearch
from tilewright.scheduler.strategies.exhaustive import ExhaustiveSearch
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.registry import factory
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.strategies.similarity import Similarity
from tilewright.scheduler.strategies.trust import trust
from tilewright.scheduler.testing.landscape import Guess, hills, hills_latency, trees
from tilewright.scheduler.testing.search import SearchContract, ask, drive, outcome
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

SEEDS = (0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6)))


def evolutionary(space: Space, seed: int) -> EvolutionarySearch:
    return EvolutionarySearch(space, trees(space), Guess(), seed)


class TestRandomSearch(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return RandomSearch(space, seed)


class TestExhaustiveSearch(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return ExhaustiveSearch(space)


class TestEvolutionarySearch(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return EvolutionarySearch(space, trees(space), Guess(), seed, Evolution(immigrants=128))


class TestGeneticSearch(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return factory("genetic")(space, seed)


class TestAnnealingSearch(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return factory("annealing")(space, seed)


class TestIteratedLocalSearch(SearchContract):
    def make(self, space: Space, seed: int) -> Search:
        return factory("iterated-local")(space, seed)


@pytest.mark.parametrize("make", [RandomSearch, evolutionary])
def test_another_seed_asks_for_others(make: Callable[[Space, int], Search]) -> None:
    space = hills()
    assert set(ask(make(space, 0), 32)) != set(ask(make(space, 1), 32))


def best_of(search: Search, trials: int, batch: int = 16) -> float:
    """The best latency found when each batch is asked for before the last one is known."""
    best, ahead = np.inf, ask(search, batch)
    for _ in range(trials // batch):
        current, ahead = ahead, ask(search, batch)
        results = [(schedule, hills_latency(schedule.values)) for schedule in current]
        best = min(best, *(latency for _, latency in results))
        search.tell(results)
    return best


def test_evolution_beats_chance() -> None:
    """By the mean of a few seeds: chance is lucky at times."""
    space = hills()
    evolved = [best_of(evolutionary(space, seed), 96) for seed in range(3)]
    drawn = [best_of(RandomSearch(space, seed), 256) for seed in range(3)]
    assert np.mean(evolved) < np.mean(drawn)


@pytest.mark.parametrize("seed", SEEDS)
def test_evolution_comes_near_the_optimum_in_128_trials(seed: int) -> None:
    space = hills()
    rows = np.concatenate(list(space.blocks()))
    sample = np.random.default_rng(0).choice(rows, 20_000, replace=False)
    good = np.quantile([hills_latency(space.schedule(row).values) for row in sample], 0.001)
    assert best_of(evolutionary(space, seed), 128) < good


def test_the_first_batch_follows_the_prior_and_is_diverse() -> None:
    space = hills()
    for seed in range(4):
        batch = ask(evolutionary(space, seed), 16)
        tiles = {(schedule["rows"], schedule["vectors"]) for schedule in batch}
        assert len(tiles) >= 4
        blind = ask(RandomSearch(space, seed), 16)
        assert prior_score(space, batch) > prior_score(space, blind) + 0.05


def prior_score(space: Space, schedules: list[Schedule]) -> float:
    score, _ = Guess().predict(space, space.rows(schedules))
    return float(np.mean(score))


def test_the_prior_orders_the_first_batch() -> None:
    space = hills()
    batch = ask(evolutionary(space, 0), 16)
    score, _ = Guess().predict(space, space.rows(batch))
    assert score[0] == max(score)


def test_who_proposes_after_the_first_results() -> None:
    """Neighbours of the best and children by the model's choice, and some drawn blindly."""
    space = hills()
    search = evolutionary(space, 0)
    first = search.ask(64)
    assert {proposed.origin for proposed in first} <= {"child", "immigrant", "random"}
    search.tell([(p.schedule, outcome(p.schedule)) for p in first])
    origins = [proposed.origin for proposed in search.ask(64)]
    assert 20 <= origins.count("neighbour") <= 28
    assert 2 <= origins.count("random") <= 6
    assert origins.count("child") > 16


@pytest.mark.parametrize(("count", "least", "most"), [(16, 0, 2), (64, 24, 24)])
def test_a_large_first_batch_does_not_follow_the_prior_alone(
    count: int, least: int, most: int
) -> None:
    first = evolutionary(hills(), 0).ask(count)
    assert least <= sum(p.origin == "random" for p in first) <= most


def test_what_is_chosen_comes_with_the_prediction_that_chose_it() -> None:
    space = hills()
    asked = [p for p in evolutionary(space, 0).ask(16) if p.origin != "random"]
    mean, spread = Guess().predict(space, space.rows([p.schedule for p in asked]))
    assert [p.mean for p in asked] == mean.tolist()
    assert [p.spread for p in asked] == spread.tolist()


class Sure(Guess):
    """A model that learns nothing, says ``score`` of all, and is 0.6 unsure of it."""

    def __init__(self, score: float = 2.0) -> None:
        self.score = score

    def predict(self, space: Space, population: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(population), self.score), np.full(len(population), 0.6)


def test_prior_and_model_are_mixed_as_they_are_trusted() -> None:
    """As many outcomes as ``caution``, and nothing said of who is better: half of each."""
    space = hills()
    search = EvolutionarySearch(space, Sure(), Guess(), 0, Evolution(caution=16.0), far=Sure(3.0))
    told = [(schedule, outcome(schedule)) for schedule in ask(search, 16)]
    search.tell(told)
    asked = [p for p in search.ask(16) if p.origin != "random"]
    latency = np.array([np.inf if seconds is None else seconds for _, seconds in told])
    said, _ = Guess().predict(space, space.rows([schedule for schedule, _ in told]))
    known = trust(latency.min() / latency, said, np.zeros(0), 16.0)
    prior, spread = known.prior(*Guess().predict(space, space.rows([p.schedule for p in asked])))
    assert known.share == 0.5
    said = np.where([p.origin == "neighbour" for p in asked], 2.0, 3.0)
    assert set(said) == {2.0, 3.0}
    assert [p.mean for p in asked] == pytest.approx((prior + said) / 2)
    assert [p.spread for p in asked] == pytest.approx((spread + 0.6) / 2)


class Divided(Guess):
    """A seventh of the score's unit lies between register tiles of eight rows and all others."""

    def predict(self, space: Space, population: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        score = (space.decision_columns(population)["hills.rows"] == 8) / 7
        return score, np.zeros(len(population))


def test_a_gain_weighs_more_than_likeness_once_there_are_results() -> None:
    space = hills()
    search = EvolutionarySearch(space, Divided(), Divided(), 0)
    search.tell([(schedule, 1e-3 / (1 + (schedule["rows"] == 8))) for schedule in ask(search, 16)])
    asked = [p for p in search.ask(16) if p.origin != "random"]
    assert {p.schedule["rows"] for p in asked} == {8}


@pytest.mark.parametrize("diversity", [0.02, 0.2])
def test_rows_too_far_behind_to_be_chosen_need_no_look(diversity, monkeypatch) -> None:
    def asked() -> list[Schedule]:
        settings = Evolution(immigrants=256, diversity=diversity, opening_diversity=diversity)
        return drive(EvolutionarySearch(hills(), trees(hills()), Guess(), 0, settings), 3, 16)

    few, looked_at = asked(), []

    def everything(pool, margin, count):
        looked_at.append(len(within(pool, margin, count)) < len(pool))
        return pool

    within = evolutionary_module.Pool.within
    monkeypatch.setattr(evolutionary_module.Pool, "within", everything)
    assert asked() == few
    assert any(looked_at)  # some rows were passed over


@pytest.mark.parametrize("alone", [True, False])
def test_neighbours_may_be_judged_by_what_the_search_measured_alone(alone) -> None:
    space = hills()
    model = trees(space)
    settings = Evolution(immigrants=256, near_by_model=alone)
    search = EvolutionarySearch(space, model, Guess(), 0, settings)
    drive(search, 1, 16)
    asked = search.ask(16)
    for origins, own in (({"neighbour"}, alone), ({"immigrant", "child"}, False)):
        some = [p for p in asked if p.origin in origins]
        said, _ = model.predict(space, space.rows([p.schedule for p in some]))
        assert some
        assert np.allclose([p.mean for p in some], said) == own


def test_a_child_differs_from_its_parents_in_few_decisions() -> None:
    """All children are of one row with itself."""
    space = hills()
    [row] = space.sample(np.random.default_rng(0), 1)
    starter = space.schedule(row)
    single = Evolution(immigrants=1, parents=1, children=256, generations=1, random=0.0)
    search = EvolutionarySearch(space, trees(space), Sure(), 0, single, starters=[starter])
    children = [p.schedule for p in search.ask(256) if p.origin == "child"]
    changed = [sum(c[name] != value for name, value in starter.values.items()) for c in children]
    assert len(children) > 32
    assert 1.0 <= np.mean(changed) < 3.0


def test_all_training_takes_some_times_the_last() -> None:
    """The model is not trained anew for every few outcomes of many."""
    space, rows = hills(), list[int]()

    class Counted(XGBoostModel):
        def fit_groups(self, groups: Sequence[Group]) -> None:
            rows.append(sum(len(group.latency) for group in groups))
            super().fit_groups(groups)

    model = Counted(space_for=lambda workload, target: space)
    search = EvolutionarySearch(space, model, Guess(), 0, Evolution(immigrants=64, generations=1))
    told = [space.schedule(row) for row in space.sample(np.random.default_rng(0), 320)]
    for start in range(0, len(told), 8):
        search.tell([(schedule, outcome(schedule)) for schedule in told[start : start + 8]])
        search.ask(1)
    assert rows[:2] == [8, 16]
    assert sum(rows) < 10 * rows[-1]


def test_a_starter_is_called_one() -> None:
    space = hills()
    rows = space.sample(np.random.default_rng(0), 5000)
    starter = space.schedule(rows[np.argmax(Guess().predict(space, rows)[0])])
    search = EvolutionarySearch(space, trees(space), Guess(), 0, starters=[starter])
    assert (starter, "starter") in [(p.schedule, p.origin) for p in search.ask(16)]


def test_a_first_batch_tries_the_first_starters_whatever_the_prior_says() -> None:
    space = hills()
    rows = space.sample(np.random.default_rng(0), 5000)
    worst = rows[np.argsort(Guess().predict(space, rows)[0])]
    starters = list(dict.fromkeys(map(space.schedule, worst)))[:8]
    settings = Evolution(starters=0.5)
    search = EvolutionarySearch(space, trees(space), Guess(), 0, settings, starters)
    first = ask(search, 10)
    assert [schedule for schedule in starters if schedule in first] == starters[:5]
    search.tell([(schedule, outcome(schedule)) for schedule in first])
    assert not set(starters) & set(ask(search, 10))


def test_one_of_each_batch_is_drawn_blindly() -> None:
    """Evolution under a prior that forbids all but one register tile still looks elsewhere."""

    class Narrow(Guess):
        def predict(self, space: Space, population: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            score = (space.decision_columns(population)["hills.rows"] == 8).astype(float)
            return score, np.zeros(len(population))

    space = hills()
    search = EvolutionarySearch(space, trees(space), Narrow(), 0)
    elsewhere = [s for _ in range(8) for s in ask(search, 16) if s["rows"] != 8]
    assert 4 <= len(elsewhere) <= 8


def test_it_keeps_away_from_what_is_avoided() -> None:
    """Also where a prior thinks it best, and before anything is measured."""
    space = hills()
    rows = space.sample(np.random.default_rng(0), 2000)
    best = rows[np.argmax(Guess().predict(space, rows)[0])]
    near = []
    for avoided in ([], [space.schedule(best)]):
        search = EvolutionarySearch(space, trees(space), Guess(), 0, avoided=avoided)
        asked = [s for _ in range(4) for s in ask(search, 16)]
        near.append(Similarity(space).to(best, space.rows(asked)).mean())
        assert not set(asked) & set(avoided)
    assert near[1] < near[0] - 0.1


def test_in_the_end_nothing_is_avoided() -> None:
    space, settings = hills(), Evolution(immigrants=128)
    told = [(s, outcome(s)) for s in ask(evolutionary(space, 0), settings.avoidance_ends)]
    for count, alike in ((len(told) - 1, False), (len(told), True)):
        free, kept = (
            EvolutionarySearch(space, trees(space), Guess(), 1, settings, avoided=avoided)
            for avoided in ([], [told[0][0]])
        )
        for search in (free, kept):
            search.tell(told[:count])
        assert (ask(free, 16) == ask(kept, 16)) == alike
