"""What tasks that are tuned together tell each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import spearmanr

from tests.scheduler.suites.six_products import SPACES, blind
from tilewright.costmodel.interfaces import Example
from tilewright.measure.database import Database
from tilewright.scheduler.defaults import default_search
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.search import Proposed
from tilewright.scheduler.suites.shared_model import (
    LEADERS,
    SharedModel,
    SharingSearch,
    sharing_search,
)
from tilewright.scheduler.testing.landscape import MACHINE, Hills, hills_latency, knolls
from tilewright.scheduler.tuning.transfer import Transfer
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


def examples(space: Space, count: int) -> list[Example]:
    rows = space.sample(np.random.default_rng(3), count)
    schedules = [space.schedule(row) for row in rows]
    return [Example(space.workload, MACHINE, s, hills_latency(s.values)) for s in schedules]


def on(target: CpuTarget, space: Space) -> Space:
    """The same space on another device."""
    return Space(space.workload, target, [Hills(space.workload, target)])


def correlation(latency: Sequence[float], score: np.ndarray) -> float:
    return float(spearmanr(latency, score).statistic)


def test_what_one_task_measures_the_others_search_by() -> None:
    one, other = SPACES[:2]
    shared = SharedModel([one, other])
    rows = other.sample(np.random.default_rng(4), 128)
    truth = np.array([hills_latency(other.schedule(row).values) for row in rows])
    assert not shared.trained
    ignorant, _ = shared.predict(other, rows)
    shared.learn(examples(one, 128))
    assert shared.trained
    taught, _ = shared.predict(other, rows)

    def chosen(score: np.ndarray) -> float:
        return float(np.median(truth[np.argsort(-score)[:16]]))

    assert chosen(taught) < 0.8 * chosen(ignorant)


def test_what_is_slow_on_one_device_may_be_fast_on_another() -> None:
    """Trees know devices by their features, so that what was measured of several can be pooled."""
    here, elsewhere = SPACES[0], on(replace(MACHINE, cores=2 * MACHINE.cores), SPACES[0])
    shared = SharedModel([here, elsewhere])
    known = examples(here, 128)
    shared.learn(known)
    shared.learn(
        [Example(e.workload, elsewhere.target, e.schedule, 1e-6 / e.latency) for e in known]
    )
    rows = here.sample(np.random.default_rng(4), 128)
    latency = [hills_latency(here.schedule(row).values) for row in rows]
    assert correlation(latency, shared.predict(here, rows)[0]) < -0.5
    assert correlation(latency, shared.predict(elsewhere, rows)[0]) > 0


def test_what_is_fastest_for_one_task_the_others_try_in_their_next_batch(
    database: Database,
) -> None:
    one, other, third = SPACES[:3]
    shared = SharedModel([one, other, third])
    search = SharingSearch(RandomSearch(other, 0), other, shared)
    assert all(proposal.origin == "random" for proposal in search.ask(16))
    slow, fast, failed, *_ = (example.schedule for example in examples(one, 8))
    SharingSearch(blind(one), one, shared).tell([(slow, 2.0), (fast, 1.0), (failed, None)])
    known = examples(third, 4)[-1].schedule
    SharingSearch(blind(third), third, shared).tell([(known, 1.0)])
    search.tell([(known, 1.0)])
    tried, *others = search.ask(4)
    assert tried == Proposed(fast, "starter")
    assert len(others) == 3
    assert {proposal.origin for proposal in others} == {"random"}
    assert search.ask(16)[0] == Proposed(slow, "starter")  # a quarter of a batch at most
    assert all(proposal.origin == "random" for proposal in search.ask(16))


def test_what_others_found_is_asked_for_once(database: Database) -> None:
    """Also where the search itself would ask for it, and never was told."""
    small = knolls()
    every = list(small.enumerate())
    shared = SharedModel([small, SPACES[0]])
    search = SharingSearch(RandomSearch(small, 0), small, shared)
    shared.learn([Example(SPACES[0].workload, MACHINE, s, 1.0) for s in every[:3]])
    asked: list[Schedule] = []
    while batch := search.ask(8):
        asked += [proposal.schedule for proposal in batch]
    assert sorted(asked, key=lambda s: s.key) == sorted(every, key=lambda s: s.key)


def test_of_each_task_only_the_fastest_are_tried_elsewhere() -> None:
    one, other = SPACES[:2]
    shared = SharedModel([one, other])
    known = sorted(examples(one, 64), key=lambda e: (e.latency or 0.0, e.schedule.key))
    shared.learn(known[::-1])
    found = shared.leaders(other)
    assert len(found) == LEADERS
    latency = {example.schedule: example.latency for example in known}
    assert [latency[s] for s in found] == [e.latency for e in known[:LEADERS]]
    assert shared.leaders(one) == []
    lucky = found[0]
    shared.learn([Example(one.workload, MACHINE, lucky, 99.0)])  # as measured again
    assert shared.leaders(other)[-1] == lucky


def test_a_search_that_begins_with_what_others_learned_has_a_second_opinion(
    database: Database,
) -> None:
    """Whatever is proposed after 24 outcomes, it is proposed by both."""
    one, other = SPACES[:2]
    proposed = []
    for make in (
        lambda shared: sharing_search(other, database, shared, seed=5),
        lambda shared: SharingSearch(default_search(other, 5, Transfer(shared, [])), other, shared),
    ):
        shared = SharedModel([one, other])
        shared.learn(examples(one, 128))
        search = make(shared)
        asked: list[Schedule] = []
        for _ in range(5):
            batch = [proposal.schedule for proposal in search.ask(8)]
            search.tell([(schedule, hills_latency(schedule.values)) for schedule in batch])
            asked += batch
        proposed.append(asked)
    assert proposed[0] == proposed[1]
