"""Which schedules a tuning run compares in the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    attempt,
    histories,
)
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.scoreboard import APART, Scoreboard
from tilewright.spaces.schedule import Schedule

NAMES = ("a", "b", "c", "d", "e")


def schedule(values: tuple[int, ...], template: str = "one") -> Schedule:
    return Schedule(template, tuple(zip(NAMES, values, strict=True)))


def board(latencies: dict[Schedule, float]) -> Scoreboard:
    made = Scoreboard()
    for one, latency in latencies.items():
        made.add(Measurement(one, Status.OK, latency, (latency,)), 0.0)
    return made


def differences(one: Schedule, other: Schedule) -> int:
    return sum(one[name] != other[name] for name in NAMES)


def test_what_is_nearly_alike_comes_last():
    every = [schedule(values) for values in product((0, 1), repeat=len(NAMES))]
    latencies = {one: 1.0 + i / 100 for i, one in enumerate(every)}
    made = board(dict(reversed(latencies.items())))  # the fastest last, as in a search
    first, *others = made.leaders(len(every))
    assert first == every[0]
    assert sorted(others, key=lambda one: one.key) == sorted(every[1:], key=lambda one: one.key)
    chosen = [first]
    for one in others:
        if min(differences(one, other) for other in chosen) < APART:
            break
        chosen.append(one)
    assert len(chosen) >= 4
    rest = others[len(chosen) - 1 :]
    assert rest == sorted(rest, key=latencies.__getitem__)
    assert all(min(differences(one, other) for other in chosen) < APART for one in rest)


def test_what_is_unlike_but_far_behind_takes_no_place_of_near_duplicates():
    alike = [schedule((0, 0, 0, 0, value)) for value in range(4)]
    unlike = [schedule((value, value, value, 0, 0)) for value in range(1, 9)]
    latencies = {one: 1.0 + i / 100 for i, one in enumerate([*alike, *unlike])}
    made = board(dict(reversed(latencies.items())))  # the fastest last, as in a search
    assert made.leaders(3) == [alike[0], *unlike[:2]]
    assert made.leaders(2) == alike[:2]


def test_another_template_is_unlike():
    one, alike, other = schedule((0,) * 5), schedule((0, 0, 0, 0, 1)), schedule((0,) * 5, "two")
    made = board({one: 1.0, alike: 1.1, other: 1.2})
    assert made.leaders(2) == [one, other]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with Database(tmp_path_factory.mktemp("database") / "tuning.db") as database:
        yield database


@settings(max_examples=40, deadline=None)
@given(earlier=histories, searched=histories, compared=histories, false=st.integers(0, 12))
def test_what_is_best_is_what_the_database_says(database, earlier, searched, compared, false):
    """Of earlier runs, of this run's search and comparison, and of one record found false."""
    target = replace(TARGET, threads=len(database.summaries()) + 1)  # that no other example has
    own = [replace(measurement, round="search") for measurement, _ in searched]
    own += [replace(measurement, round="final") for measurement, _ in compared]
    given = [*earlier, *((measurement, False) for measurement in own)]
    database.record_all(
        [
            replace(attempt(replace(m, started_at=float(at)), target=target), doubted=doubted)
            for at, (m, doubted) in enumerate(given)
        ]
    )
    records = list(database.records(target=target))
    before = [r for r in records[: len(earlier)] if not (r.doubted or r.measurement.lost)]
    made = Scoreboard()
    made.resume([record.measurement for record in before])
    for at, record in enumerate(records[len(earlier) :]):
        if at < len(searched):
            made.add(record.measurement, 0.0)
        else:
            made.add_final(record.measurement)
    for record in before[false : false + 1]:
        database.doubt(record)
        made.withdraw([record.measurement])
    best = database.best(WORKLOAD, target)
    assert made.best == (best.measurement if best and not best.doubted else None)


def test_earlier_comparisons_take_turns_with_the_rest():
    compared = {schedule((i, i, i, 0, 0)): 2.0 + i for i in range(1, 4)}
    others = {schedule((0, 0, i, i, i)): 1.0 + i / 10 for i in range(1, 4)}
    made = board(others)
    made.resume([Measurement(s, Status.OK, x, (x,), round="final") for s, x in compared.items()])
    expected = [one for pair in zip(compared, others, strict=True) for one in pair]
    assert made.leaders(6) == expected


def test_what_a_machine_measured_after_it_became_slower_is_compared_too():
    early = {schedule((i, i, i, 0, 0)): 1.0 + i / 100 for i in range(8)}
    late = {schedule((0, 0, i, i, i)): 1.4 + i / 100 for i in range(1, 9)}  # half as slow again
    found = board(early | late).leaders(6)
    assert found[:2] == [min(early, key=early.__getitem__), min(late, key=late.__getitem__)]
    assert sum(one in late for one in found) == 3


def calls(action: Callable[[], None]) -> int:
    """How many functions, of Python or C, ``action`` calls."""
    counted = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return counted


def test_what_a_candidate_costs_does_not_grow_with_those_before_it():
    made, search, drawn = Scoreboard(), RandomSearch(hills()), iter(range(10**6))

    def batch() -> None:
        for proposed in search.ask(16):
            score = 1.0 + next(drawn) % 997
            measurement = Measurement(proposed.schedule, Status.OK, score, (score,))
            made.add(measurement, 0.0)
            search.tell([(measurement.schedule, score)])
            assert made.best is not None
            assert made.right > 0

    costs = [calls(batch) for _ in range(140)]
    assert sum(costs[70:]) < 1.5 * sum(costs[:70])
