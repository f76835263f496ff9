"""Interleaved timing of several calls in one process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

Call = Callable[[], object]
REST = 0.1
"""Seconds of rest before a sample of many threads: the workers of the call before may spin on for
a while after their work, and would hold the cores that the next call needs."""


def interleave(
    calls: Mapping[str, Call], threads: int, rounds: int, seconds: float, sample: float = 2e-3
) -> dict[str, list[float]]:
    """Seconds of one call, a list a name: shuffled rounds, until ``rounds`` or ``seconds`` are up.

    Each sample repeats its call for at least ``sample`` seconds. One thread is timed by its own
    CPU clock, which other processes disturb least; more threads by the wall clock.
    """
    clock = time.thread_time if threads == 1 else time.perf_counter
    repeats = {name: _repeats(call, sample) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    names, end = list(calls), time.monotonic() + seconds
    for _ in range(rounds):
        random.shuffle(names)
        for name in names:
            call, count = calls[name], repeats[name]
            if threads > 1:
                time.sleep(REST)
            call()
            start = clock()
            for _ in range(count):
                call()
            times[name].append((clock() - start) / count)
        if time.monotonic() > end:
            break
    return times


def _repeats(call: Call, sample: float) -> int:
    call()
    start = time.perf_counter()
    call()
    return max(1, round(sample / max(time.perf_counter() - start, 1e-7)))
