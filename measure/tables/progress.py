"""The progress of a run since somebody looked last, for those who watch it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, func, select

from tilewright.measure.records.measurement import Status
from tilewright.measure.tables.schema import measurements, pairs, runs


@dataclass(frozen=True)
class RunProgress:
    """Attempts of a run: how many, failures by kind, the least latency in seconds of the right
    ones, and the Unix time of the last. ``last`` is the number of its row, 0 without one."""

    attempts: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    best: float | None = None
    at: float = 0.0
    last: int = 0

    def __add__(self, other: RunProgress) -> RunProgress:
        """Return both together, such as what was known and what came since."""
        known = [best for best in (self.best, other.best) if best is not None]
        return RunProgress(
            self.attempts + other.attempts,
            Counter(self.failures) + Counter(other.failures),
            min(known, default=None),
            max(self.at, other.at),
            max(self.last, other.last),
        )


_PROGRESS = (
    select(
        measurements.c.error_kind,
        measurements.c.status,
        func.count(),
        func.min(measurements.c.score),
        func.max(measurements.c.recorded_at),
        func.max(measurements.c.id),
    )
    .where(measurements.c.run == bindparam("run"), measurements.c.id > bindparam("after"))
    .group_by(measurements.c.error_kind, measurements.c.status)
)


def progress(connection: Connection, run: str, after: int) -> RunProgress:
    """Return what became known of a run after the row with the number ``after``."""
    found = RunProgress()
    for kind, status, count, least, at, last in connection.execute(
        _PROGRESS, {"run": run, "after": after}
    ):
        failed = {str(kind): count} if kind is not None else {}
        best = least if status == str(Status.OK) else None
        found += RunProgress(count, failed, best, at, last)
    return found


_NEWS = (
    select(func.max(measurements.c.id)),
    select(func.count(), func.count(runs.c.ended_at), func.max(runs.c.id)).select_from(runs),
    select(*(func.sum(column) for column in pairs.c["trials", "failures", "lost"])),
)


def news(connection: Connection) -> tuple[int | float | None, ...]:
    """Return numbers that are others once an attempt or a run was added, or a run ended."""
    return tuple(number for query in _NEWS for number in connection.execute(query).one())
