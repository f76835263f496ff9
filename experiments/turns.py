"""Time calls in turns, and compare their times turn by turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles
from typing import Any


def in_turns(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Return the seconds of each call, one after the other."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = clock()
            call()
            times[name].append(clock() - began)
    return times


def medians(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median time of each call."""
    return {name: median(found) for name, found in times.items()}


def ratio(others: Sequence[float], own: Sequence[float]) -> tuple[float, list[float]]:
    """Return the median of the others' times over our own, turn by turn, and the quartiles."""
    ratios = [other / each for other, each in zip(others, own, strict=True)]
    lower, _, upper = quantiles(ratios, n=4)
    return median(ratios), [lower, upper]
