"""The tuning database: every attempt, and the best-known schedule per workload and target.

One attempt is one row, on disk when :meth:`Database.record` returns. Threads may share a
:class:`Database`, and processes a file. What ranks as best is said in ``measure.records.ranking``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from tilewright.measure.records.fields import prose
from tilewright.measure.records.jsonl import write_lines
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Run
from tilewright.measure.tables.best_known import best_row, rankings
from tilewright.measure.tables.engine import (
    engines,
    for_one_query,
    for_writing,
    name,
    transaction,
    usable,
)
from tilewright.measure.tables.inserting import beat, insert, pieces
from tilewright.measure.tables.merging import first_schedules, merged
from tilewright.measure.tables.opening import open_engine
from tilewright.measure.tables.progress import RunProgress, news, progress
from tilewright.measure.tables.queries import (
    TRIALS_OF_RUN,
    pairs_query,
    recent_runs_query,
    records_query,
    runs_query,
    summaries_query,
    trials,
    versions_query,
)
from tilewright.measure.tables.reading import Reader
from tilewright.measure.tables.retries import retried
from tilewright.measure.tables.rows import as_read
from tilewright.measure.tables.schema import measurements, runs
from tilewright.measure.tables.similarity.nearest import nearest_pairs
from tilewright.measure.tables.similarity.related import related_pairs, sibling_pairs, thread_pairs
from tilewright.measure.tables.summary import Summary
from tilewright.measure.tables.upkeep import Stats, stats, vacuum
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


class Database:
    """All measurements, in SQLite (the path of a file) or PostgreSQL (an SQLAlchemy URL).

    Every method raises :class:`InputError` where the database is locked for too long, damaged or
    out of reach. A malformed row is skipped, and reported at the end.
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
        self._engine = open_engine(location, create)
        self._closed = False
        self._reader = Reader(self._engine)
        self._writer = for_writing(self._engine)
        self._asker = for_one_query(self._engine)

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<Database {self._engine.url.render_as_string(hide_password=True)}{state}>"

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Its name in messages: a file's path, or the URL without its password."""
        return name(self._engine)

    @property
    def location(self) -> str:
        """The URL by which another process opens it, with its password."""
        return self._engine.url.render_as_string(hide_password=False)

    def close(self) -> None:
        """Close all connections, unless others have the database open. Idempotent."""
        if not self._closed:
            self._closed = True
            engines.release(self._engine)
        if complaint := self._reader.complaint():
            self._report(complaint)

    # -- writing ---------------------------------------------------------------------------

    def record(self, record: Record) -> bool:
        """Keep one attempt; on disk on return. False if this very attempt is there already."""
        return self.record_all([record]) == 1

    @retried
    def record_all(self, records: Sequence[Record]) -> int:
        """Keep attempts that became known together, all of them or none; on disk on return.

        Their number, those not counted that are there already. One write to the disk for all.
        It is also a heartbeat of the runs that they name.
        """
        if not records:
            return 0
        now = time.time()
        read = [as_read(record, now) for record in records]
        with transaction(self._writer) as connection:
            new = insert(connection, read)
            beat(connection, {record.run for record in records if record.run}, now)
        return new

    @retried
    def doubt(self, record: Record) -> None:
        """Mark a record whose score could not be confirmed: from now on it ranks last."""
        with transaction(self._writer) as connection:
            same = measurements.c.key == record.key
            connection.execute(update(measurements).where(same).values(doubted=True))

    @retried
    def begin_run(self, run: Run) -> None:
        """Keep a run that begins, before the first record that names it."""
        with transaction(self._writer) as connection:
            insert(connection, [], [run])

    def beat(self, key: str) -> None:
        """Note that the run called ``key`` is alive, where it has had nothing to record."""
        with transaction(self._writer) as connection:
            beat(connection, {key}, time.time())

    @retried
    def set_start(self, key: str, started_at: float) -> None:
        """Note that the run called ``key`` began at another Unix time, by a clock that was set
        since."""
        now = time.time()
        with transaction(self._writer) as connection:
            moved = update(runs).where(runs.c.key == key)
            connection.execute(moved.values(started_at=started_at, heartbeat=now))

    @retried
    def end_run(self, key: str, reason: str) -> None:
        """Note that the run called ``key`` has ended now, and why."""
        now = time.time()
        with transaction(self._writer) as connection:
            ended = update(runs).where(runs.c.key == key)
            connection.execute(ended.values(heartbeat=now, ended_at=now, reason=prose(reason)))

    def add(self, parts: Iterable[Run | Record]) -> int:
        """Keep what another database kept, as it was there; the number of new records.

        Of a run the state with the later heartbeat stays, and what is doubted here or there is
        doubted. A thousand at a time are on disk together.
        """
        added = 0
        for piece in pieces(parts):
            added += self._add(piece)
        return added

    @retried
    def _add(self, piece: Sequence[Run | Record]) -> int:
        found = [part for part in piece if isinstance(part, Run)]
        records = [part for part in piece if isinstance(part, Record)]
        with transaction(self._writer) as connection:
            return insert(connection, records, found)

    def import_jsonl(self, path: str | Path, report: Callable[[str], None] = warnings.warn) -> int:
        """Add the runs and records of an export that are not here yet; the number of records.

        ``report`` is told of what is left out: a torn last line, and records that cannot be true
        (``measure.records.plausibility``), each kind of them once. :class:`InputError` for any
        other fault; what stands before it was imported, and may be imported again.
        """
        from tilewright.measure.tables.importing import take  # with what reads many lines

        return take(self._writer, Path(path), report)

    # -- reading ---------------------------------------------------------------------------

    @retried
    def best(
        self, workload: Workload, target: Target, versions: Collection[str] | None = None
    ) -> Record | None:
        """Return the best-known schedule's record, by indexed queries; None if none is known.

        ``versions`` asks for schedules of these versions of templates only.
        """
        with usable(self._engine), self._asker.connect() as connection:
            row = best_row(connection, workload, target, versions)
        if row is None:
            return None
        found = list(self._reader.records_of(workload, target, [row]))
        if not found:  # it is malformed
            found = self.best_few(workload, target, 1, versions)
        return found[0] if found else None

    @retried
    def best_few(
        self,
        workload: Workload,
        target: Target,
        count: int,
        versions: Collection[str] | None = None,
    ) -> list[Record]:
        """Return the records of at most ``count`` best schedules, best first, each schedule
        once."""
        with transaction(self._engine) as connection:
            both = rankings(connection, workload, target, versions, count)
            read = (self._reader.records_of(workload, target, rows) for rows in both)
            return first_schedules(merged(*read), count)

    def nearest(self, workload: Workload, target: Target, count: int = 8) -> Iterator[Record]:
        """Return the best record of each of the ``count`` nearest other workloads, nearest first,
        each read when it is asked for.

        Those are of the same operator and target; what is near,
        ``measure.tables.similarity.distance`` says.
        """
        ids = self._asked(nearest_pairs, workload, target)
        return islice(self._reader.best_of(ids), count)

    def of_siblings(
        self, workload: Workload, target: Target, versions: Collection[str]
    ) -> Iterator[Record]:
        """Return the best record of this workload on each sibling of ``target``, the nearest first,
        each read when it is asked for: see :meth:`spaces.target.Target.is_sibling`.

        Siblings count that have right schedules of these ``versions`` of templates.
        """
        ids = self._asked(sibling_pairs, workload, target, versions)
        return self._reader.best_of(ids)

    def of_other_threads(
        self, workload: Workload, target: Target, versions: Collection[str]
    ) -> list[Record]:
        """Return the best record of this workload on the same machine for each other number of
        threads that has right schedules of these ``versions`` of templates."""
        with transaction(self._engine) as connection:
            ids = thread_pairs(connection, workload, target, versions)
        return list(self._reader.best_of(ids))

    def related(
        self, workload: Workload, target: Target, versions: Collection[str], count: int = 8
    ) -> list[Record]:
        """Return the best record of each of the ``count`` nearest other shapes, operators and
        devices.

        Their targets are of the same kind, and they have right schedules of these ``versions`` of
        templates; see ``measure.tables.similarity.related`` for what is near.
        """
        ids = self._asked(related_pairs, workload, target, versions)
        return list(islice(self._reader.best_of(ids), count))

    @retried
    def _asked(self, query: Callable[..., Iterable[int]], *about: Any) -> Iterable[int]:
        """Return the rows of ``pairs`` that a query finds."""
        with transaction(self._engine) as connection:
            return query(connection, *about)

    def records(
        self, workload: Workload | None = None, target: Target | None = None
    ) -> Iterator[Record]:
        """Yield all attempts of one workload or target, or of all; the oldest row comes first."""
        rows = self._reader.pages(records_query(workload, target), measurements.c.id)
        if workload is not None and target is not None:  # known, they are not read again
            return self._reader.records_of(workload, target, rows)
        return self._reader.records(rows)

    def runs(self, session: str | None = None) -> Iterator[Run]:
        """Yield all runs, or those of a session, oldest row first; a run's key counts as a session,
        too.
        """
        return self._reader.runs(self._reader.pages(runs_query(session), runs.c.id))

    @retried
    def progress(self, run: str, after: int = 0) -> RunProgress:
        """Return what became known of the run with this key after the row of a measurement with
        the number ``after``."""
        with transaction(self._engine) as connection:
            return progress(connection, run, after)

    @retried
    def news(self) -> tuple[int | float | None, ...]:
        """Return numbers that are others once an attempt or a run was added, or a run ended."""
        with transaction(self._engine) as connection:
            return news(connection)

    def recent_runs(self, count: int, alive_since: float) -> list[Run]:
        """Return the last ``count`` runs that came here, and those that did not end and gave a
        sign of life after this Unix time; the oldest row comes first. Notes, such as comparisons,
        are left out."""
        query = recent_runs_query(count, alive_since)
        return list(self._reader.runs(self._reader.pages(query, runs.c.id)))

    @retried
    def trials_of_run(self, key: str) -> int:
        """Return the number of schedules that a run tried, however they ended, but for those
        lost."""
        with transaction(self._engine) as connection:
            return connection.execute(TRIALS_OF_RUN, {"run": key}).scalar_one()

    @retried
    def trials(self, workload: Workload, target: Target) -> int:
        """Return the number of schedules that were tried, however they ended, but for those
        lost."""
        with transaction(self._engine) as connection:
            return trials(connection, workload, target)

    @retried
    def versions(
        self, workload: Workload | None = None, target: Target | None = None
    ) -> dict[str, dict[str, int]]:
        """Count the attempts with each version of a template, by the target's fingerprint; of one
        workload or target or of all. Lost attempts are left out.
        """
        found: dict[str, dict[str, int]] = {}
        with transaction(self._engine) as connection:
            rows = connection.execute(versions_query(workload, target)).all()
        for fingerprint, version, count in rows:
            found.setdefault(fingerprint, {})[version] = count
        return found

    @retried
    def pairs(self) -> list[tuple[Workload, Target]]:
        """Return each workload and target that there are attempts of, in order of workload."""
        with transaction(self._engine) as connection:
            rows = connection.execute(pairs_query()).all()
        return list(self._reader.pairs(rows))

    @retried
    def summaries(self, since: float | None = None) -> list[Summary]:
        """One summary for each workload and target there are attempts of, in order of workload; of
        those with attempts since a Unix time, if one is given."""
        with transaction(self._engine) as connection:
            rows = connection.execute(summaries_query(since)).all()
        return list(self._reader.summaries(rows))

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

    @retried
    def stats(self) -> Stats:
        """Count the rows of each table, failed and lost attempts, and bytes on disk."""
        with transaction(self._engine) as connection:
            return stats(connection)

    def vacuum(self) -> None:
        """Give back the room that nothing uses; :class:`InputError` where this role may not."""
        with usable(self._engine):
            vacuum(self._engine)
