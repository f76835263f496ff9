"""Timers take turns, on arrays that have left the caches."""

from __future__ import annotations

from tilewright.scheduler.turns import MOST_BYTES, MOST_ROUNDS, MOST_SETS, rounds, sets_beyond


def test_each_timer_is_called_once_a_round_in_changing_orders() -> None:
    called: list[int] = []
    timers = [lambda n=n: (called.append(n), float(n))[1] for n in range(3)]
    found = rounds(timers, 40, 0.0)
    assert found == [(0.0, 1.0, 2.0)] * 40
    orders = {tuple(called[start : start + 3]) for start in range(0, len(called), 3)}
    assert {tuple(sorted(order)) for order in orders} == {(0, 1, 2)}
    assert len(orders) == 6


def test_rounds_end_with_their_time_and_number() -> None:
    assert len(rounds([lambda: 0.0], 1, 60.0)) == MOST_ROUNDS
    assert len(rounds([lambda: 0.0], 2 * MOST_ROUNDS, 0.0)) == 2 * MOST_ROUNDS


def test_sets_are_more_than_a_cache_holds_and_less_than_memory() -> None:
    assert sets_beyond(100, 10) * 10 > 200
    assert sets_beyond(0, 10) == 2
    assert sets_beyond(1 << 40, 1 << 20) == MOST_BYTES >> 20
    assert sets_beyond(1 << 40, 1) == MOST_SETS
    assert sets_beyond(5, 0) == 16
