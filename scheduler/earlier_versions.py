"""Records of earlier versions of templates, and of schedules that there no longer are: they count
for nothing, and are a start.

The same schedule is another kernel since, or none. What was fast may be fast again, so what is
nearest to the best of them today is measured before anything else is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.measure.records.record import Record
    from tilewright.spaces.schedule import Schedule
    from tilewright.spaces.space import Space

STARTS = 4
"""Schedules of earlier records that are measured first, at most."""


def starting_schedules(space: Space, records: Sequence[Record]) -> list[Schedule]:
    """Return the schedules of ``space`` that are nearest to the fastest of ``records``, each once:
    decisions may have come and gone since."""
    import numpy as np  # which a list of what is known does without

    best: dict[Schedule, float] = {}
    for record in records:
        score = record.measurement.score
        if score is not None and not record.doubted:
            best[record.schedule] = min(score, best.get(record.schedule, inf))
    generator = np.random.default_rng(0)
    found: dict[Schedule, None] = {}
    for schedule in sorted(best, key=best.__getitem__):
        near = space.nearest(schedule, generator)
        if near is not None:
            found[near] = None
        if len(found) == STARTS:
            break
    return list(found)


def count_earlier(versions: Mapping[str, int], is_earlier: Callable[[str], bool]) -> int:
    """Say how many records are of earlier versions, of so many of each version."""
    return sum(count for version, count in versions.items() if is_earlier(version))


def note_on_earlier(count: int) -> str:
    """Return a sentence on ``count`` records of earlier template versions."""
    records = "1 record is" if count == 1 else f"{count} records are"
    them = "its template and does" if count == 1 else "their templates and do"
    return (
        f"{records} of an earlier version of {them} not count; what is nearest to the best of "
        "them is measured first when it is tuned"
    )
