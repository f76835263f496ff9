"""The schedule that serves each number of rows best, among the open kernels of one size.

The fastest kernel of 16 rows may have tiles of 8 rows, and take as long for 11 rows as for 16.
Another one, with tiles of 12 rows, is then better for 9 to 12 rows. So a kernel of a table may have
several open ones of its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.scheduler.dispatch.table import OpenRange
from tilewright.spaces.schedule import Schedule

ALIKE = 0.03
"""Share by which a schedule may be slower than the fastest, if fewer schedules are needed then."""


def best_ranges(times: Mapping[Schedule, Sequence[float]]) -> tuple[OpenRange, ...]:
    """Return the fewest ranges of rows in each of which one schedule is as fast as any, or almost.

    ``times`` has those of 0 to as many rows as the kernels take, in seconds. There are no ranges
    without times.

    Example::

        best_ranges({slow: (9, 9, 9), fast: (9, 1, 9)})  # fast up to 1 row, slow up to 2
    """
    if not times:
        return ()
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


def range_seconds(
    ranges: Sequence[OpenRange], times: Mapping[Schedule, Sequence[float]]
) -> tuple[float, ...]:
    """Return the time of each number of rows, from 0 on, by the schedule of its range; empty if
    ``times`` lack a schedule."""
    if any(each.schedule not in times for each in ranges):
        return ()
    found: list[float] = []
    for each in ranges:
        found.extend(times[each.schedule][len(found) : each.last + 1])
    return tuple(found)
