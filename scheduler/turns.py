"""Calls in turns: several timers, one after the other, again and again.

Calls that are compared take turns, so that what disturbs the machine disturbs all of them, on sets
of arrays of which each has left the caches when it comes again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

GAIN = 1.02
"""The factor by which a kernel must be faster than torch to take its place, and torch to keep it:
more than such a comparison may err."""
MOST_BYTES = 1 << 29
"""Memory of the arrays that calls take in turns, at most."""
MOST_SETS = 1000
MOST_ROUNDS = 1000


def sets_beyond(cache_bytes: int, set_bytes: int) -> int:
    """Return how many sets of arrays, of so many bytes each, a cache cannot keep until the first
    one comes again: at least two, as far as memory allows."""
    size = max(1, set_bytes)
    return max(2, min(1 + 3 * cache_bytes // size, MOST_BYTES // size, MOST_SETS))


def rounds(
    timers: Sequence[Callable[[], float]], least: int, seconds: float
) -> list[tuple[float, ...]]:
    """Call timers in turns, in a new order in each round: ``least`` rounds, and more until so many
    ``seconds`` are over. Returns what they gave, round by round."""
    draw, end = random.Random(0), time.perf_counter() + seconds
    found: list[tuple[float, ...]] = []
    while len(found) < least or (time.perf_counter() < end and len(found) < MOST_ROUNDS):
        order = draw.sample(range(len(timers)), len(timers))
        given = {place: timers[place]() for place in order}
        found.append(tuple(given[place] for place in range(len(timers))))
    return found
