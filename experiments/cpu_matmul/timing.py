"""Interleaved timing of several calls in one process."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping

Call = Callable[[], object]
REST = 0.1
"""Seconds of rest before a sample of many threads: the workers of the call before may spin on for
a while after their work, and would hold the cores that the next call needs."""
WARM = 10e-3
"""Seconds of calls between such a rest and a sample: the first calls are up to three times as slow
as those that follow, until threads are awake and have a core each."""
TRIES = 5
"""Calls of which the fastest decides how many calls are a sample: were it one, two names of the
same call could get different numbers, and means over more or fewer of their first, slower calls."""


def interleave(
    calls: Mapping[str, Call], threads: int, rounds: int, seconds: float, sample: float = 2e-3
) -> dict[str, list[float]]:
    """Seconds of one call, a list a name: shuffled rounds, until ``rounds`` or ``seconds`` are up.

    Each sample repeats its call for at least ``sample`` seconds. One thread is timed by its own
    CPU clock, which other processes disturb least; more threads by the wall clock.
    """
    clock = time.thread_time if threads == 1 else time.perf_counter
    repeats = {name: repeats_of(call, sample) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    names, end = list(calls), time.monotonic() + seconds
    for _ in range(rounds):
        random.shuffle(names)
        for name in names:
            call, count = calls[name], repeats[name]
            if threads > 1:
                time.sleep(REST)
                _call_for(WARM, call)
            call()
            start = clock()
            for _ in range(count):
                call()
            times[name].append((clock() - start) / count)
        if time.monotonic() > end:
            break
    return times


def repeats_of(call: Call, sample: float) -> int:
    """Return the calls that take at least ``sample`` seconds together, if each is as fast as the
    fastest."""
    fastest, end = math.inf, time.perf_counter() + TRIES * sample
    for _ in range(TRIES):
        start = time.perf_counter()
        call()
        fastest = min(fastest, time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return max(1, math.ceil(sample / max(fastest, 1e-7)))


def _call_for(seconds: float, call: Call) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
