"""Which schedules a tuning run compares in the end."""

from __future__ import annotations

from itertools import product

from measure.measurement import Measurement, Status
from scheduler.scoreboard import APART, Scoreboard
from spaces.schedule import Schedule

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
    made = board(latencies)
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


def test_another_template_is_unlike():
    one, alike, other = schedule((0,) * 5), schedule((0, 0, 0, 0, 1)), schedule((0,) * 5, "two")
    made = board({one: 1.0, alike: 1.1, other: 1.2})
    assert made.leaders(2) == [one, other]


def test_earlier_comparisons_take_turns_with_the_rest():
    compared = {schedule((i, i, i, 0, 0)): 2.0 + i for i in range(1, 4)}
    others = {schedule((0, 0, i, i, i)): 1.0 + i / 10 for i in range(1, 4)}
    made = board(others)
    made.resume([Measurement(s, Status.OK, x, (x,), round="final") for s, x in compared.items()])
    expected = [one for pair in zip(compared, others, strict=True) for one in pair]
    assert made.leaders(6) == expected
