"""Merge the two rankings of attempts that may win (``measure.tables.best_known``)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from tilewright.measure.records.ranking import rank
from tilewright.measure.records.record import Record

Row = TypeVar("Row")


def in_pieces(fetch: Callable[[int, int], Sequence[Row]], count: int) -> Iterator[Row]:
    """Yield the rows that ``fetch`` returns for a limit and an offset: ``count`` at first, then
    ever more, as they are asked for."""
    start = 0
    while True:
        rows = fetch(count, start)
        yield from rows
        if len(rows) < count:
            return
        start, count = start + count, 2 * count


def merged(in_full: Iterable[Record], passed_over: Iterable[Record]) -> Iterator[Record]:
    """Return the right attempts of both rankings of a workload on a target, best first."""

    def placed(records: Iterable[Record], is_passed_over: bool) -> Iterator[tuple[Any, ...]]:
        for record in records:
            if record.measurement.ok:
                yield record.doubted, rank(record.measurement, is_passed_over), record.id, record

    both = heapq.merge(placed(in_full, False), placed(passed_over, True))
    return (record for *_, record in both)


def first_schedules(records: Iterable[Record], count: int) -> list[Record]:
    """Return the first record of each schedule, of at most ``count`` schedules."""
    found: dict[str, Record] = {}
    for record in records:
        found.setdefault(record.schedule.key, record)
        if len(found) == count:
            break
    return list(found.values())
