"""Records of earlier versions of templates: they count for nothing, and are a start.

The same schedule is another kernel since. What was fast may be fast again, so the best of those
that today's rules allow are measured before anything else is tried.
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
    """Return the fastest schedules of earlier ``records`` that ``space`` still has, each once."""
    best: dict[Schedule, float] = {}
    for record in records:
        score = record.measurement.score
        if score is not None and not record.doubted:
            best[record.schedule] = min(score, best.get(record.schedule, inf))
    found = (s for s in sorted(best, key=best.__getitem__) if s in space)
    return [space.ordered(schedule) for schedule, _ in zip(found, range(STARTS), strict=False)]


def count_earlier(versions: Mapping[str, int], is_earlier: Callable[[str], bool]) -> int:
    """Say how many records are of earlier versions, of so many of each version."""
    return sum(count for version, count in versions.items() if is_earlier(version))


def note_on_earlier(count: int) -> str:
    """Return a sentence on ``count`` records of earlier template versions."""
    records = "1 record is" if count == 1 else f"{count} records are"
    them = "its template and does" if count == 1 else "their templates and do"
    return (
        f"{records} of an earlier version of {them} not count; what is valid of the best is "
        "measured first when it is tuned"
    )
