"""Select attempts of a database: by operator, target, time and outcome, or the newest few."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING

from tilewright.measure.records.measurement import Status
from tilewright.spaces.errors import InputError, shown

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record
    from tilewright.measure.records.run import Run
    from tilewright.spaces.target import Target
    from tilewright.spaces.workloads.workload import Workload

UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGO = re.compile(r"(\d{1,6})([mhdw])")


@dataclass(frozen=True)
class Selection:
    """The attempts that are wanted; what is None or false admits all.

    ``operator`` is a name, such as ``matmul`` (``program`` of programs without one); ``target`` a
    target's name or a part of its description; ``since`` a Unix time. ``failed`` admits failed
    attempts of schedules only. ``least`` is the least ``id`` of a record.
    """

    operator: str | None = None
    target: str | None = None
    since: float | None = None
    failed: bool = False
    least: int | None = None

    def is_of(self, text: str, target: Target) -> bool:
        """Return True if attempts of the workload with this ``text`` on ``target`` may be
        wanted."""
        return self._has_operator(text) and self._has_target(target)

    def takes(self, record: Record) -> bool:
        """Return True if this attempt is wanted, of a workload and target that are."""
        measurement = record.measurement
        return (
            (self.since is None or measurement.started_at >= self.since)
            and (not self.failed or measurement.status is Status.ERROR)
            and (self.least is None or (record.id or 0) >= self.least)
        )

    def pairs(self, database: Database) -> list[tuple[Workload, Target]]:
        """Return the workloads and targets that may be wanted."""
        return [pair for pair in database.pairs() if self.is_of(str(pair[0]), pair[1])]

    def records(self, database: Database) -> Iterator[Record]:
        """Yield the attempts that are wanted, in the order in which they became known."""
        pairs = {(w.key, target.fingerprint) for w, target in self.pairs(database)}
        for record in database.records():
            of = (record.workload.key, record.target.fingerprint)
            if of in pairs and self.takes(record):
                yield record

    def runs(self, database: Database) -> Iterator[Run]:
        """Return the runs that these attempts belong to."""
        named = {record.run for record in self.records(database)}
        return (run for run in database.runs() if run.key in named)

    def newest(self, database: Database, count: int) -> Selection:
        """Return the same, of the newest ``count`` attempts only."""
        ids = nlargest(count, (record.id or 0 for record in self.records(database)))
        return replace(self, least=min(ids, default=0))

    def _has_operator(self, text: str) -> bool:
        if self.operator is None:
            return True
        from tilewright.spaces.workloads.workload import PROGRAM  # with NumPy

        return self.operator == (PROGRAM if text.startswith('"') else text.partition(" ")[0])

    def _has_target(self, target: Target) -> bool:
        if self.target is None or self.target == target.text:
            return True
        return self.target.lower() in f"{target.kind} {target.summary}".lower()


EVERYTHING = Selection()


def moment_of(text: str | None) -> float | None:
    """Return the Unix time of ``2026-11-28``, ``2026-11-28 14:30`` or, ago, ``90m``, ``12h``,
    ``3d``, ``2w``; None of None; :class:`InputError` for any other text."""
    if text is None:
        return None
    if ago := _AGO.fullmatch(text):
        return time.time() - int(ago[1]) * UNITS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        allowed = "2026-11-28, '2026-11-28 14:30', 90m, 12h, 3d, 2w"
        raise InputError(f"{shown(text)} is no time; allowed: {allowed}") from None
