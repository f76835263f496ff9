"""Searches by their names: what each does that the contract of all does not say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scheduler.made_up_machine import MadeUpMachine
from tests.scheduler.strategies.test_search import best_of
from tests.scheduler.suites.test_tuner import suite
from tilewright.measure.database import Database
from tilewright.scheduler.strategies.genetic import POPULATION
from tilewright.scheduler.strategies.history import History
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.registry import check, factory
from tilewright.scheduler.strategies.walk import DRAWS
from tilewright.scheduler.testing.landscape import MACHINE, hills
from tilewright.scheduler.testing.search import ask, outcome
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.task import UNTUNED
from tilewright.scheduler.tuning.tuner import Tuner, tune
from tilewright.spaces.errors import InputError

WALKS = ("genetic", "annealing", "iterated-local")


@pytest.mark.parametrize("name", WALKS)
def test_each_beats_chance(name: str) -> None:
    space = hills()
    found = [best_of(factory(name)(space, seed), 192, batch=8) for seed in range(3)]
    drawn = [best_of(RandomSearch(space, seed), 192, batch=8) for seed in range(3)]
    assert np.mean(found) < np.mean(drawn)


def test_a_local_search_asks_for_all_neighbours_of_its_optimum() -> None:
    """With outcomes told one by one it goes to the first neighbour that is faster."""
    space, search = hills(), factory("iterated-local")(hills(), 0)
    seconds, kicked = {}, False
    for _ in range(400):
        [proposed] = search.ask(1)
        kicked = kicked or proposed.origin == "child"
        seconds[proposed.schedule] = outcome(proposed.schedule) or np.inf
        search.tell([(proposed.schedule, outcome(proposed.schedule))])
        if kicked:
            break
    best = min(seconds, key=seconds.__getitem__)
    near = space.neighbours(space.row(best), np.random.default_rng(0))
    missing = [row for row in near if space.schedule(row) not in seconds]
    assert kicked
    assert len(missing) < len(near) / 10  # rules are repaired at random


def test_generations_are_children_of_the_first_drawn() -> None:
    search = factory("genetic")(hills(), 0)
    origins = []
    for _ in range(3 * POPULATION):
        [proposed] = search.ask(1)
        origins.append(proposed.origin)
        search.tell([(proposed.schedule, outcome(proposed.schedule))])
    assert origins == ["random"] * POPULATION + ["child"] * 2 * POPULATION


def test_annealing_begins_at_the_fastest_of_its_draws() -> None:
    """Its first step leads one decision away from there."""
    search = factory("annealing")(hills(), 0)
    drawn = ask(search, DRAWS)
    search.tell([(schedule, outcome(schedule)) for schedule in drawn])
    [step] = ask(search, 1)
    fastest = min(drawn, key=lambda schedule: outcome(schedule) or np.inf)
    changed = [sum(s[name] != value for name, value in step.values.items()) for s in drawn]
    assert drawn[int(np.argmin(changed))] == fastest


def test_a_history_knows_what_it_was_told() -> None:
    space = hills()
    history = History(space, 0)
    rows = space.sample(np.random.default_rng(0), 3)
    ran, failed = (space.schedule(row) for row in rows[:2])
    history.take(rows)
    history.tell([(ran, 2.0), (failed, None)])
    assert [history.seconds(row) for row in rows] == [2.0, np.inf, np.inf]


def test_unknown_searches_and_models_nobody_follows_are_refused() -> None:
    with pytest.raises(InputError, match="unknown search 'luck'; allowed: evolutionary, random"):
        factory("luck")
    with pytest.raises(InputError, match="search=random follows no model"):
        check("random", "model.ubj")
    with pytest.raises(InputError, match="unknown search 'luck'"):
        tune("matmul m=8 n=8 k=8", search="luck")


def test_a_tuner_uses_the_search_that_it_is_told(database: Database) -> None:
    space = hills()
    tuner = Tuner(
        space.workload,
        space.target,
        database,
        MadeUpMachine(),
        spaces=[space],
        baselines=[Baseline(space.workload)],
        strategy="random",
    )
    tuner.run(trials=24, seconds=600)
    proposals = [record.proposal for record in database.records() if record.proposal]
    assert {proposal.origin for proposal in proposals} <= {"random", "finalist", UNTUNED}
    [run] = database.runs()
    assert run.configuration["search"] == "random"


def test_a_suite_uses_the_search_that_it_is_told(database: Database) -> None:
    spaces = [hills(size) for size in (256, 320, 384, 448, 512, 576)]
    tuner = Tuner(suite(), MACHINE, database, MadeUpMachine(), spaces=spaces, strategy="genetic")
    tuner.run(trials=48, seconds=600)
    proposals = [record.proposal for record in database.records() if record.proposal]
    assert {proposal.origin for proposal in proposals} <= {"random", "child", "finalist", UNTUNED}
    assert {run.configuration["search"] for run in database.runs()} == {"genetic"}
