"""The tuning database: every attempt, and the best-known schedule per workload and target.

One attempt is one row, on disk when :meth:`Database.record` returns. Threads may share a
:class:`Database`, and processes a file.

What ranks as best. A final score, taken interleaved with the other best, is more honest than a
search score, which partly won by luck: a search's winner is 1-2 % off on average and 10 % at
worst. So a schedule that was measured in a final round counts by that alone, and one that was
not must be ahead by ``HANDICAP`` to win: far enough that luck does not beat a final winner, near
enough that a run killed before its final round still counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, case, exists, func, or_, select

from measure.distance import distance
from measure.engine import for_writing, name, open_engine, usable
from measure.inserting import insert
from measure.jsonl import parse_json, read_records, write_records
from measure.measurement import Measurement
from measure.record import Record
from measure.rows import JSON, PLAIN, from_row, to_row
from measure.schema import measurements, targets, workloads
from spaces.errors import InputError
from spaces.operators import workload_from_json
from spaces.target import Target, target_from_json
from spaces.workload import Workload

_PAGE = 1000


@dataclass(frozen=True)
class Summary:
    """What a database knows of one workload on one target.

    ``trials`` counts schedules, however often each was measured; ``failures`` failed attempts.
    """

    workload: Workload
    target: Target
    trials: int
    failures: int
    best: Record | None


class Database:
    """All measurements, in SQLite (the path of a file) or PostgreSQL (an SQLAlchemy URL).

    Every method raises :class:`InputError` where the database is locked for too long, damaged or
    out of reach, and where a row it reads is malformed.
    """

    def __init__(self, location: str | Path, create: bool = True) -> None:
        """Open a database, made if it is missing and ``create`` is true.

        Raises :class:`InputError` if it is foreign, newer than this program, or unreadable.
        """
        self._engine = open_engine(location, create)
        self._writer = for_writing(self._engine)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._engine.dispose()

    # -- writing ---------------------------------------------------------------------------

    def record(
        self,
        workload: Workload,
        target: Target,
        space_version: str,
        measurement: Measurement,
        session: str = "",
    ) -> bool:
        """Keep one attempt; on disk on return. False if this very attempt is there already."""
        return self.record_all(workload, target, space_version, [measurement], session) == 1

    def record_all(
        self,
        workload: Workload,
        target: Target,
        space_version: str,
        measurements: Sequence[Measurement],
        session: str = "",
    ) -> int:
        """Keep attempts that became known together, all of them or none; on disk on return.

        Their number, those not counted that are there already. One write to the disk for all.
        """
        now = time.time()
        return self._add(
            [Record(workload, target, space_version, m, session, now) for m in measurements]
        )

    def import_jsonl(self, path: str | Path, report: Callable[[str], None] = warnings.warn) -> int:
        """Add the records of an export that are not here yet; their number.

        ``report`` is told of a torn last line, which is left out. :class:`InputError` for any
        other fault; what stands before it was imported, and may be imported again.
        """
        added = 0
        with closing(read_records(Path(path), report)) as records:
            while page := list(islice(records, _PAGE)):
                added += self._add(page)
        return added

    def _add(self, records: Sequence[Record]) -> int:
        rows = [(record.workload, record.target, to_row(record)) for record in records]
        if not rows:
            return 0
        with self._transaction(writes=True) as connection:
            return insert(connection, rows)

    # -- reading ---------------------------------------------------------------------------

    def best(
        self, workload: Workload, target: Target, space_version: str | None = None
    ) -> Record | None:
        """The best-known schedule's record, by one indexed query; None if none is known.

        ``space_version`` asks for measurements of that version of the space only.
        """
        with self._transaction() as connection:
            row = connection.execute(ranking(workload, target, space_version).limit(1)).first()
        return None if row is None else self._decode(row)

    def best_few(
        self, workload: Workload, target: Target, count: int, space_version: str | None = None
    ) -> list[Record]:
        """The records of at most ``count`` best schedules, best first, each schedule once."""
        found: dict[str, Record] = {}
        with self._transaction() as connection:
            query = ranking(workload, target, space_version)
            rows = connection.execute(query.execution_options(yield_per=64))
            for row in rows:
                found.setdefault(row.schedule_digest, self._decode(row))
                if len(found) == count:
                    break
            rows.close()
        return list(found.values())

    def nearest(self, workload: Workload, target: Target, count: int = 8) -> list[Record]:
        """The best record of each of the ``count`` nearest other workloads, nearest first.

        Those are of the same operator and target; see ``measure.distance`` for what is near.
        """
        measured = (
            exists()
            .where(
                measurements.c.workload_id == workloads.c.id,
                measurements.c.target_id == targets.c.id,
                measurements.c.rank_score.is_not(None),
                targets.c.fingerprint == target.fingerprint,
            )
            .correlate(workloads)
        )
        query = select(workloads.c.description).where(
            workloads.c.operator == workload.operator,
            workloads.c.key != workload.key,
            measured,
        )
        with self._transaction() as connection:
            others = [workload_from_json(parse_json(text)) for (text,) in connection.execute(query)]
        others.sort(key=lambda other: distance(workload, other))
        best = (self.best(other, target) for other in others[:count])
        return [record for record in best if record is not None]

    def records(
        self, workload: Workload | None = None, target: Target | None = None
    ) -> Iterator[Record]:
        """Every attempt, oldest row first, of one workload or target or of all."""
        query = _records().order_by(measurements.c.id).limit(_PAGE)
        if workload is not None:
            query = query.where(workloads.c.key == workload.key)
        if target is not None:
            query = query.where(targets.c.fingerprint == target.fingerprint)
        last = 0
        while True:
            with self._transaction() as connection:  # none stays open between two pages
                rows = connection.execute(query.where(measurements.c.id > last)).all()
            yield from map(self._decode, rows)
            if len(rows) < _PAGE:
                return
            last = rows[-1].id

    def trials(self, workload: Workload, target: Target) -> int:
        """Number of schedules that were tried, however they ended."""
        query = (
            select(func.count(measurements.c.schedule_digest.distinct()))
            .join(workloads)
            .join(targets)
            .where(workloads.c.key == workload.key, targets.c.fingerprint == target.fingerprint)
        )
        with self._transaction() as connection:
            return connection.execute(query).scalar_one()

    def summaries(self) -> list[Summary]:
        """One summary for each workload and target there are attempts of, in order of workload."""
        failed = case((measurements.c.error_kind.is_not(None), 1), else_=0)
        pair = (workloads.c.key, workloads.c.description, targets.c.id, targets.c.description)
        query = (
            select(
                workloads.c.description.label("workload"),
                targets.c.description.label("target"),
                func.count(measurements.c.schedule_digest.distinct()).label("trials"),
                func.sum(failed).label("failures"),
            )
            .select_from(measurements)
            .join(workloads)
            .join(targets)
            .group_by(*pair)
            .order_by(workloads.c.key, targets.c.id)
        )
        with self._transaction() as connection:
            rows = connection.execute(query).all()
        return [self._summary(row) for row in rows]

    def export_jsonl(self, path: str | Path) -> int:
        """Write every record to a file, see ``measure.jsonl``; their number."""
        return write_records(Path(path), self.records())

    # -- internals -------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[Connection]:
        engine = self._writer if writes else self._engine
        with usable(self._engine), engine.begin() as connection:
            yield connection

    def _summary(self, row: Row[Any]) -> Summary:
        workload = workload_from_json(parse_json(row.workload))
        target = target_from_json(parse_json(row.target))
        best = self.best(workload, target)
        return Summary(workload, target, row.trials, row.failures, best)

    def _decode(self, row: Row[Any]) -> Record:
        try:
            return from_row(row._asdict())
        except InputError as error:
            raise InputError(
                f"record {row.id} of database {name(self._engine)} is malformed: {error}"
            ) from None


def ranking(workload: Workload, target: Target, space_version: str | None = None) -> Select[Any]:
    """The query for a workload's attempts on a target that may win, best first.

    Of a schedule that was compared in the end, only the last comparison counts: who has been
    compared often has been lucky once.
    """
    final = measurements.alias("final")
    compared_since = exists().where(
        final.c.workload_id == measurements.c.workload_id,
        final.c.target_id == measurements.c.target_id,
        final.c.schedule_digest == measurements.c.schedule_digest,
        final.c.round == "final",
        or_(measurements.c.round != "final", final.c.started_at > measurements.c.started_at),
    )
    query = _records().where(
        workloads.c.key == workload.key,
        targets.c.fingerprint == target.fingerprint,
        measurements.c.rank_score.is_not(None),
        ~compared_since,
    )
    if space_version is not None:
        query = query.where(measurements.c.space_version == space_version)
    return query.order_by(measurements.c.rank_score, measurements.c.id)


def _records() -> Select[Any]:
    return (
        select(
            *measurements.c["id", "schedule_digest", *PLAIN, *JSON],
            workloads.c.key.label("workload_key"),
            workloads.c.description.label("workload"),
            targets.c.fingerprint,
            targets.c.description.label("target"),
        )
        .join(workloads, measurements.c.workload_id == workloads.c.id)
        .join(targets, measurements.c.target_id == targets.c.id)
    )
