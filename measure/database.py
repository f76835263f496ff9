"""The tuning database: every attempt, and the best-known schedule per workload and target.

One attempt is one row, on disk when :meth:`Database.record` returns. Threads may share a
:class:`Database`, and processes a file. What ranks as best is said in ``measure.ranking``.
"""

from __future__ import annotations

import heapq
import itertools
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Row, Select, update

from measure.engine import for_writing, name, open_engine, usable
from measure.fields import Fields, prose
from measure.inserting import insert, insert_runs
from measure.jsonl import read_lines, write_lines
from measure.plausibility import Sieve
from measure.queries import (
    BEST_OF_PAIR,
    nearest_pairs,
    rankings,
    records_query,
    runs_query,
    summaries_query,
    trials_query,
)
from measure.ranking import rank
from measure.record import Record
from measure.rows import from_row, run_from_row, target_from_column, workload_from_column
from measure.run import Run
from measure.schema import measurements, runs
from spaces.errors import InputError
from spaces.target import Target
from spaces.workload import Workload

_PAGE = 1000
_PIECE = 64

Read = TypeVar("Read")


@dataclass(frozen=True)
class Summary:
    """What a database knows of one workload on one target.

    ``trials`` counts schedules, however often each was measured; ``failures`` failed attempts of
    schedules; ``lost`` attempts that the machine failed. ``score`` is the latency of the best
    schedule in seconds, None if there is none; ``doubted`` whether a run found it false.
    """

    workload: Workload
    target: Target
    trials: int
    failures: int
    lost: int
    score: float | None
    doubted: bool


class Database:
    """All measurements, in SQLite (the path of a file) or PostgreSQL (an SQLAlchemy URL).

    Every method raises :class:`InputError` where the database is locked for too long, damaged or
    out of reach. A row that is malformed is passed over, and told of at the end.
    """

    def __init__(
        self,
        location: str | Path,
        create: bool = True,
        report: Callable[[str], None] = warnings.warn,
    ) -> None:
        """Open a database, made if it is missing and ``create`` is true.

        ``report`` is told, when it is closed, how many rows were passed over. Raises
        :class:`InputError` if it is foreign, newer than this program, or unreadable.
        """
        self._report = report
        self._passed_over: dict[tuple[str, int | None], str] = {}
        self._engine = open_engine(location, create)
        self._writer = for_writing(self._engine)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._engine.dispose()
        if self._passed_over:
            count, reasons = len(self._passed_over), list(self._passed_over.values())
            self._passed_over = {}
            self._report(
                f"{count} malformed row{'s' if count > 1 else ''} of database "
                f"{name(self._engine)} passed over; the first: {reasons[0]}"
            )

    # -- writing ---------------------------------------------------------------------------

    def record(self, record: Record) -> bool:
        """Keep one attempt; on disk on return. False if this very attempt is there already."""
        return self.record_all([record]) == 1

    def record_all(self, records: Sequence[Record]) -> int:
        """Keep attempts that became known together, all of them or none; on disk on return.

        Their number, those not counted that are there already. One write to the disk for all.
        It is also a heartbeat of the runs that they name.
        """
        if not records:
            return 0
        now = time.time()
        with self._transaction(writes=True) as connection:
            new = insert(connection, [replace(record, recorded_at=now) for record in records])
            _beat(connection, {record.run for record in records if record.run}, now)
        return new

    def doubt(self, record: Record) -> None:
        """Mark a record whose score could not be confirmed: from now on it ranks last."""
        with self._transaction(writes=True) as connection:
            same = measurements.c.key == record.key
            connection.execute(update(measurements).where(same).values(doubted=True))

    def begin_run(self, run: Run) -> None:
        """Keep a run that begins, before the first record that names it."""
        with self._transaction(writes=True) as connection:
            insert_runs(connection, [run])

    def beat(self, key: str) -> None:
        """Note that the run called ``key`` is alive, where it has had nothing to record."""
        with self._transaction(writes=True) as connection:
            _beat(connection, {key}, time.time())

    def end_run(self, key: str, reason: str) -> None:
        """Note that the run called ``key`` has ended now, and why."""
        now = time.time()
        with self._transaction(writes=True) as connection:
            ended = update(runs).where(runs.c.key == key)
            connection.execute(ended.values(heartbeat=now, ended_at=now, reason=prose(reason)))

    def import_jsonl(self, path: str | Path, report: Callable[[str], None] = warnings.warn) -> int:
        """Add the runs and records of an export that are not here yet; the number of records.

        ``report`` is told of what is left out: a torn last line, and records that cannot be true
        (``measure.plausibility``), each kind of them once. :class:`InputError` for any other
        fault; what stands before it was imported, and may be imported again.
        """
        added, sieve = 0, Sieve()
        with closing(read_lines(Path(path), report)) as lines:
            while page := list(islice(lines, _PAGE)):
                with self._transaction(writes=True) as connection:
                    insert_runs(connection, [line for _, line in page if isinstance(line, Run)])
                    added += insert(connection, sieve.keep(page))
        for sentence in sieve.sentences(str(path)):
            report(sentence)
        return added

    # -- reading ---------------------------------------------------------------------------

    def best(
        self, workload: Workload, target: Target, versions: Collection[str] | None = None
    ) -> Record | None:
        """The best-known schedule's record, by indexed queries; None if none is known.

        ``versions`` asks for schedules of these versions of templates only.
        """
        return next(iter(self.best_few(workload, target, 1, versions)), None)

    def best_few(
        self,
        workload: Workload,
        target: Target,
        count: int,
        versions: Collection[str] | None = None,
    ) -> list[Record]:
        """The records of at most ``count`` best schedules, best first, each schedule once."""
        found: dict[str, Record] = {}
        with self._transaction() as connection:
            for record in self._ranked(connection, rankings(workload, target, versions)):
                found.setdefault(record.schedule.key, record)
                if len(found) == count:
                    break
        return list(found.values())

    def nearest(self, workload: Workload, target: Target, count: int = 8) -> list[Record]:
        """The best record of each of the ``count`` nearest other workloads, nearest first.

        Those are of the same operator and target; see ``measure.distance`` for what is near.
        """
        with self._transaction() as connection:
            ids = nearest_pairs(connection, workload, target, count)
            best = (connection.execute(BEST_OF_PAIR, {"pair": id}).first() for id in ids)
            rows = [row for row in best if row is not None]
        return list(self._readable(rows, "record", _record))

    def records(
        self, workload: Workload | None = None, target: Target | None = None
    ) -> Iterator[Record]:
        """Every attempt, oldest row first, of one workload or target or of all."""
        rows = self._pages(records_query(workload, target), measurements.c.id)
        return self._readable(rows, "record", _record)

    def runs(self) -> Iterator[Run]:
        """Every run, oldest row first."""
        return self._readable(self._pages(runs_query(), runs.c.id), "run", _run)

    def trials(self, workload: Workload, target: Target) -> int:
        """Number of schedules that were tried, however they ended, but for those lost."""
        with self._transaction() as connection:
            return connection.execute(trials_query(workload, target)).scalar() or 0

    def summaries(self) -> list[Summary]:
        """One summary for each workload and target there are attempts of, in order of workload."""
        with self._transaction() as connection:
            rows = connection.execute(summaries_query()).all()
        return list(self._readable(rows, "group", _summary))

    def export_jsonl(self, path: str | Path) -> int:
        """Write every run and record to a file, see ``measure.jsonl``; the number of records."""
        return write_lines(Path(path), self.runs(), self.records())

    # -- internals -------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[Connection]:
        engine = self._writer if writes else self._engine
        with usable(self._engine), engine.begin() as connection:
            yield connection

    def _ranked(
        self, connection: Connection, queries: tuple[Select[Any], Select[Any]]
    ) -> Iterator[Record]:
        """The records of both rankings, best first."""

        def placed(query: Select[Any], passed_over: bool) -> Iterator[tuple[Any, ...]]:
            for record in self._readable(_in_pieces(connection, query), "record", _record):
                if record.measurement.ok:
                    yield record.doubted, rank(record.measurement, passed_over), record.id, record

        in_full, passed_over = queries
        merged = heapq.merge(placed(in_full, False), placed(passed_over, True))
        return (record for *_, record in merged)

    def _pages(self, query: Select[Any], id: Column[int]) -> Iterator[Row[Any]]:
        """The rows of a query in the order of their ``id``; no transaction stays open between."""
        query, last = query.order_by(id).limit(_PAGE), 0
        while True:
            with self._transaction() as connection:
                rows = connection.execute(query.where(id > last)).all()
            yield from rows
            if len(rows) < _PAGE:
                return
            last = rows[-1].id

    def _readable(
        self, rows: Iterable[Row[Any]], what: str, decode: Callable[[Row[Any]], Read]
    ) -> Iterator[Read]:
        """What ``rows`` hold, but for those that are malformed."""
        for row in rows:
            try:
                value = decode(row)
            except InputError as error:
                self._passed_over.setdefault((what, row.id), f"{what} {row.id or ''}: {error}")
            else:
                yield value


def _in_pieces(connection: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    """The rows of a query in its order, fetched as they are asked for."""
    for start in itertools.count(0, _PIECE):
        rows = connection.execute(query.limit(_PIECE).offset(start)).all()
        yield from rows
        if len(rows) < _PIECE:
            return


def _record(row: Row[Any]) -> Record:
    return from_row(row._asdict())


def _run(row: Row[Any]) -> Run:
    return run_from_row(row._asdict())


def _summary(row: Row[Any]) -> Summary:
    workload, target = workload_from_column(row.workload), target_from_column(row.target)
    if (workload.key, target.fingerprint) != (row.workload_key, row.fingerprint):
        raise InputError("its keys are not those of its contents")
    score = None if row.id is None else Fields({"score": row.score}).number("score")
    if score is not None and score <= 0:
        raise InputError(f"score={score!r} is not allowed; allowed: positive seconds")
    return Summary(workload, target, row.trials, row.failures, row.lost, score, bool(row.doubted))


def _beat(connection: Connection, keys: Collection[str], now: float) -> None:
    if keys:
        connection.execute(update(runs).where(runs.c.key.in_(keys)).values(heartbeat=now))
