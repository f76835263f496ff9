"""The tuning database: every attempt, and the best-known schedule per workload and target.

One attempt is one row, on disk when :meth:`Database.record` returns. Threads may share a
:class:`Database`, and processes a file. What ranks as best is said in ``measure.records.ranking``.
"""

from __future__ import annotations

import heapq
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Column, Connection, Row, Select, update

from measure.records.fields import prose
from measure.records.jsonl import write_lines
from measure.records.ranking import rank
from measure.records.record import Record
from measure.records.run import Run
from measure.tables.best_known import best_row, rankings
from measure.tables.engine import for_one_query, for_writing, name, usable
from measure.tables.inserting import beat, insert, insert_rows, insert_runs, pieces
from measure.tables.likeness.nearest import best_of_pair, nearest_pairs
from measure.tables.likeness.related import related_pairs
from measure.tables.opening import open_engine
from measure.tables.parsing import Chunk, parsed
from measure.tables.queries import (
    TRIALS_OF_RUN,
    pairs_query,
    records_query,
    runs_query,
    summaries_query,
    trials,
)
from measure.tables.rows import as_read, from_row, own_from_row, pair_from_row, run_from_row
from measure.tables.schema import measurements, runs
from measure.tables.summary import Summary, summary_from_row
from measure.tables.upkeep import Stats, stats, vacuum
from spaces.errors import InputError
from spaces.target import Target

if TYPE_CHECKING:
    from spaces.workloads.workload import Workload

_PAGE = 1000
CHUNKS = 16
"""Chunks of an import that are kept together: a page of an index is then written for many rows."""

Read = TypeVar("Read")


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
        self._asker = for_one_query(self._engine)

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
        read = [as_read(record, now) for record in records]
        with self._transaction(writes=True) as connection:
            new = insert(connection, read)
            beat(connection, {record.run for record in records if record.run}, now)
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
            beat(connection, {key}, time.time())

    def end_run(self, key: str, reason: str) -> None:
        """Note that the run called ``key`` has ended now, and why."""
        now = time.time()
        with self._transaction(writes=True) as connection:
            ended = update(runs).where(runs.c.key == key)
            connection.execute(ended.values(heartbeat=now, ended_at=now, reason=prose(reason)))

    def add(self, parts: Iterable[Run | Record]) -> int:
        """Keep what another database kept, as it was there; the number of new records.

        Of a run the state with the later heartbeat stays, and what is doubted here or there is
        doubted. A thousand at a time are on disk together.
        """
        added = 0
        for piece in pieces(parts):
            with self._transaction(writes=True) as connection:
                insert_runs(connection, [part for part in piece if isinstance(part, Run)])
                added += insert(connection, [part for part in piece if isinstance(part, Record)])
        return added

    def import_jsonl(self, path: str | Path, report: Callable[[str], None] = warnings.warn) -> int:
        """Add the runs and records of an export that are not here yet; the number of records.

        ``report`` is told of what is left out: a torn last line, and records that cannot be true
        (``measure.records.plausibility``), each kind of them once. :class:`InputError` for any
        other fault; what stands before it was imported, and may be imported again.
        """
        added, refused = 0, defaultdict[str, list[int]](list)
        with closing(parsed(Path(path))) as chunks:
            for some in pieces(chunks, CHUNKS):
                added += self._import(some)
                for reason, lines in chain(*(chunk.refused.items() for chunk in some)):
                    refused[reason] += lines
                if some[-1].torn is not None:
                    report(f"line {some[-1].torn} of {path} is torn and was left out")
                if some[-1].malformed:
                    raise InputError(some[-1].malformed)
        for reason, lines in refused.items():
            report(
                f"{len(lines)} of the records of {path} were refused: {reason} "
                f"(the first in line {lines[0]})"
            )
        return added

    def _import(self, chunks: Sequence[Chunk]) -> int:
        """Keep what these hold, all of it or nothing; how many records were new."""
        held = [chunk.held() for chunk in chunks]
        with self._transaction(writes=True) as connection:
            insert_runs(connection, [run for found, _ in held for run in found])
            return insert_rows(connection, [row for _, rows in held for row in rows])

    # -- reading ---------------------------------------------------------------------------

    def best(
        self, workload: Workload, target: Target, versions: Collection[str] | None = None
    ) -> Record | None:
        """The best-known schedule's record, by indexed queries; None if none is known.

        ``versions`` asks for schedules of these versions of templates only.
        """
        with usable(self._engine), self._asker.connect() as connection:
            row = best_row(connection, workload, target, versions)
        found = list(self._readable([row] if row else [], "record", _record_of(workload, target)))
        if row and not found:  # it is malformed
            found = self.best_few(workload, target, 1, versions)
        return found[0] if found else None

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
            both = rankings(connection, workload, target, versions, count)
            for record in self._ranked(both, _record_of(workload, target)):
                found.setdefault(record.schedule.key, record)
                if len(found) == count:
                    break
        return list(found.values())

    def nearest(self, workload: Workload, target: Target, count: int = 8) -> Iterator[Record]:
        """The best record of each of the ``count`` nearest other workloads, nearest first, each
        read when it is asked for.

        Those are of the same operator and target; what is near,
        ``measure.tables.likeness.distance`` says.
        """
        with self._transaction() as connection:
            ids = nearest_pairs(connection, workload, target)
        return islice(self._readable(self._best_of(ids), "record", _record), count)

    def related(
        self, workload: Workload, target: Target, versions: Collection[str], count: int = 8
    ) -> list[Record]:
        """The best record of each of the ``count`` nearest other shapes, operators and devices.

        Their targets are of the same kind, and they have right schedules of these ``versions`` of
        templates; see ``measure.tables.likeness.related`` for what is near.
        """
        with self._transaction() as connection:
            ids = related_pairs(connection, workload, target, versions)
        return list(islice(self._readable(self._best_of(ids), "record", _record), count))

    def records(
        self, workload: Workload | None = None, target: Target | None = None
    ) -> Iterator[Record]:
        """Every attempt, oldest row first, of one workload or target or of all."""
        rows = self._pages(records_query(workload, target), measurements.c.id)
        return self._readable(rows, "record", _record)

    def runs(self, session: str | None = None) -> Iterator[Run]:
        """Every run, oldest row first, or those of a session; a run's key is one, too."""
        return self._readable(self._pages(runs_query(session), runs.c.id), "run", _run)

    def trials_of_run(self, key: str) -> int:
        """Number of schedules that a run tried, however they ended, but for those lost."""
        with self._transaction() as connection:
            return connection.execute(TRIALS_OF_RUN, {"run": key}).scalar_one()

    def trials(self, workload: Workload, target: Target) -> int:
        """Number of schedules that were tried, however they ended, but for those lost."""
        with self._transaction() as connection:
            return trials(connection, workload, target)

    def pairs(self) -> list[tuple[Workload, Target]]:
        """Each workload and target that there are attempts of, in order of workload."""
        with self._transaction() as connection:
            rows = connection.execute(pairs_query()).all()
        return list(self._readable(rows, "group", _pair))

    def summaries(self) -> list[Summary]:
        """One summary for each workload and target there are attempts of, in order of workload."""
        with self._transaction() as connection:
            rows = connection.execute(summaries_query()).all()
        return list(self._readable(rows, "group", summary_from_row))

    def export_jsonl(self, path: str | Path) -> int:
        """Write every run and record to a file, see ``measure.records.jsonl``; the number of
        records.
        """
        return write_lines(Path(path), self.runs(), self.records())

    # -- upkeep ----------------------------------------------------------------------------

    def merge(self, source: Database) -> int:
        """Add all runs and records of another database, see :meth:`add`; how many records were new.

        It is taken at its word; of whom you do not trust, import an export.
        """
        return self.add(chain(source.runs(), source.records()))

    def stats(self) -> Stats:
        """How much there is of everything."""
        with self._transaction() as connection:
            return stats(connection)

    def vacuum(self) -> None:
        """Give back the room that nothing uses; :class:`InputError` where this role may not."""
        with usable(self._engine):
            vacuum(self._engine)

    # -- internals -------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[Connection]:
        engine = self._writer if writes else self._engine
        with usable(self._engine), engine.begin() as connection:
            yield connection

    def _ranked(
        self,
        rankings: tuple[Iterator[Row[Any]], Iterator[Row[Any]]],
        decode: Callable[[Row[Any]], Record],
    ) -> Iterator[Record]:
        """The records of both rankings, best first."""

        def placed(rows: Iterator[Row[Any]], passed_over: bool) -> Iterator[tuple[Any, ...]]:
            for record in self._readable(rows, "record", decode):
                if record.measurement.ok:
                    yield record.doubted, rank(record.measurement, passed_over), record.id, record

        in_full, passed_over = rankings
        merged = heapq.merge(placed(in_full, False), placed(passed_over, True))
        return (record for *_, record in merged)

    def _best_of(self, pairs: Iterable[int]) -> Iterator[Row[Any]]:
        """The best record of each of these rows of ``pairs`` that has one which is not doubted."""
        for pair in pairs:
            with self._transaction() as connection:
                row = connection.execute(best_of_pair(), {"pair": pair}).first()
            if row is not None and not row.doubted:
                yield row

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


def _record(row: Row[Any]) -> Record:
    return from_row(row._asdict())


def _record_of(workload: Workload, target: Target) -> Callable[[Row[Any]], Record]:
    return lambda row: own_from_row(row._asdict(), workload, target)


def _pair(row: Row[Any]) -> tuple[Workload, Target]:
    return pair_from_row(row._asdict())


def _run(row: Row[Any]) -> Run:
    return run_from_row(row._asdict())
