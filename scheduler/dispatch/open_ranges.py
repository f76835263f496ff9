"""The schedule that serves each number of rows best, among the open kernels of one size.

The fastest kernel of 16 rows may have tiles of 8 rows, and take as long for 11 rows as for 16.
Another one, with tiles of 12 rows, is then better for 9 to 12 rows. So a kernel of a table may have
two open ones of its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from tilewright.scheduler.dispatch.table import OpenRange
from tilewright.spaces.schedule import Schedule

ALIKE = 0.03
"""Share by which a schedule may be slower than the fastest, if fewer schedules are needed then."""


Times = Mapping[Schedule, Sequence[float]]
"""Seconds of 0 to as many rows as kernels take."""


def best_ranges(times: Times) -> tuple[OpenRange, ...]:
    """Return ranges of rows with the schedule that serves each best, of one schedule or of two.
    There are none without times.

    Example::

        best_ranges({slow: (9, 9, 8), fast: (9, 1, 9)})  # fast up to 1 row, slow up to 2
    """
    return fewest_ranges({each: times[each] for each in best_pair(times)}) if times else ()


def best_pair(times: Times) -> tuple[Schedule, ...]:
    """Return the one or two schedules with the least mean loss against the fastest of all.

    Few rows count as much as many: each by its inverse. The second schedule must save ``ALIKE``, as
    times have errors, and the more schedules are compared, the more of these would be chosen.
    """
    seconds = {each: np.array(own[1:]) for each, own in times.items()}
    least = np.min([*seconds.values()], axis=0)
    weights = 1 / np.arange(1, len(least) + 1)

    def loss(group: tuple[Schedule, ...]) -> float:
        own = np.min([seconds[each] for each in group], axis=0)
        return float(np.average(own / least, weights=weights)) + ALIKE * len(group)

    return min((*((each,) for each in times), *combinations(times, 2)), key=loss)


def fewest_ranges(times: Times) -> tuple[OpenRange, ...]:
    """Return the fewest ranges of rows in each of which one schedule is as fast as any, or
    almost."""
    schedules, seconds = list(times), np.array([*times.values()])
    is_far = seconds > seconds.min(axis=0) * (1 + ALIKE)
    is_far[:, 0] = True  # no range reaches down to calls of no rows
    found: list[OpenRange] = []
    last = seconds.shape[1] - 1
    while last:
        before = [int(np.flatnonzero(far[: last + 1]).max()) for far in is_far]
        sums = [own[rows + 1 : last + 1].sum() for own, rows in zip(seconds, before, strict=True)]
        best = min(range(len(schedules)), key=lambda place: (before[place], sums[place]))
        found.append(OpenRange(last, schedules[best]))
        last = before[best]
    return tuple(reversed(found))


def range_seconds(ranges: Sequence[OpenRange], times: Times) -> tuple[float, ...]:
    """Return the time of each number of rows, from 0 on, by the schedule of its range; empty if
    ``times`` lack a schedule."""
    if any(each.schedule not in times for each in ranges):
        return ()
    found: list[float] = []
    for each in ranges:
        found.extend(times[each.schedule][len(found) : each.last + 1])
    return tuple(found)
