"""Read records from rows, and skip malformed ones.

A database may be shared, and anyone who writes to it may make mistakes: one bad row spoils nothing
but itself. Skipped rows are reported once, when the database is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Column, Engine, Row, Select

from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Run
from tilewright.measure.tables.engine import name, transaction
from tilewright.measure.tables.retries import retried
from tilewright.measure.tables.rows import from_row, own_from_row, pair_from_row, run_from_row
from tilewright.measure.tables.similarity.nearest import best_of_pair
from tilewright.measure.tables.summary import Summary, summary_from_row
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

PAGE_ROWS = 1000
Read = TypeVar("Read")
Rows = Iterable[Row[Any]]


class Reader:
    """Reads records from rows of one database, and counts malformed rows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._passed_over: dict[tuple[str, int | None], str] = {}

    def complaint(self) -> str | None:
        """Say how many rows were skipped since the last call, and why the first was."""
        count, reasons = len(self._passed_over), list(self._passed_over.values())
        self._passed_over = {}
        if not count:
            return None
        return (
            f"{count} malformed row{'s' if count > 1 else ''} of database "
            f"{name(self._engine)} passed over; the first: {reasons[0]}"
        )

    def records(self, rows: Rows) -> Iterator[Record]:
        """Return the attempts in rows of ``measure.tables.rows.COLUMNS``."""
        return self._readable(rows, "record", lambda row: from_row(row._asdict()))

    def records_of(self, workload: Workload, target: Target, rows: Rows) -> Iterator[Record]:
        """Return the same of rows that are known to be of one workload and target."""
        return self._readable(
            rows, "record", lambda row: own_from_row(row._asdict(), workload, target)
        )

    def best_of(self, pairs: Iterable[int]) -> Iterator[Record]:
        """Return the best record of each of these rows of ``pairs``, but for those whose best is
        doubted; each is read when it is asked for."""
        return self.records(self._best_rows(pairs))

    def runs(self, rows: Rows) -> Iterator[Run]:
        """Return the runs in rows of ``measure.tables.queries.runs_query``."""
        return self._readable(rows, "run", lambda row: run_from_row(row._asdict()))

    def pairs(self, rows: Rows) -> Iterator[tuple[Workload, Target]]:
        """Yield the workload and target of each row of ``measure.tables.queries.pairs_query``."""
        return self._readable(rows, "group", lambda row: pair_from_row(row._asdict()))

    def summaries(self, rows: Rows) -> Iterator[Summary]:
        """Return the summaries in rows of ``measure.tables.queries.summaries_query``."""
        return self._readable(rows, "group", summary_from_row)

    def pages(self, query: Select[Any], id: Column[int]) -> Iterator[Row[Any]]:
        """Yield the rows of a query in the order of their ``id``; no transaction stays open
        between."""
        query, last = query.order_by(id).limit(PAGE_ROWS), 0
        while True:
            rows = self._fetched(query.where(id > last))
            yield from rows
            if len(rows) < PAGE_ROWS:
                return
            last = rows[-1].id

    def _best_rows(self, pairs: Iterable[int]) -> Iterator[Row[Any]]:
        for pair in pairs:
            for row in self._fetched(best_of_pair(), {"pair": pair})[:1]:
                if not row.doubted:
                    yield row

    @retried
    def _fetched(
        self, query: Select[Any], parameters: Mapping[str, Any] | None = None
    ) -> Sequence[Row[Any]]:
        with transaction(self._engine) as connection:
            return connection.execute(query, parameters or {}).all()

    def _readable(
        self, rows: Rows, what: str, decode: Callable[[Row[Any]], Read]
    ) -> Iterator[Read]:
        for row in rows:
            try:
                value = decode(row)
            except InputError as error:
                self._passed_over.setdefault((what, row.id), f"{what} {row.id or ''}: {error}")
            else:
                yield value
