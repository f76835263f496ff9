"""Asks the tables for the best-known schedules of a workload on a target.

The rule is that of ``measure.records.ranking``. What is later is told by the order of rows here,
never by a clock that came with a record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Integer,
    Row,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from tilewright.measure.records.measurement import Status
from tilewright.measure.records.ranking import FINAL, HANDICAP, PASSED_OVER, SEARCH
from tilewright.measure.tables.merging import in_pieces
from tilewright.measure.tables.rows import COLUMNS
from tilewright.measure.tables.schema import measurements, pairs, targets, workloads
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

RIGHT = (measurements.c.rank_score.is_not(None), measurements.c.doubted.is_(False))
"""True of an attempt that was right, and that no run found false."""

_Versions = BindParameter[Any] | None


def best_row(
    connection: Connection, workload: Workload, target: Target, versions: Collection[str] | None
) -> Row[Any] | None:
    """Return the best attempt of a workload on a target, without the descriptions of these two; of
    schedules of these ``versions`` of templates if they are given."""
    query = _best(versions is not None)
    return connection.execute(query, asked(workload, target, versions)).first()


def rankings(
    connection: Connection,
    workload: Workload,
    target: Target,
    versions: Collection[str] | None,
    count: int,
) -> tuple[Iterator[Row[Any]], Iterator[Row[Any]]]:
    """Return all attempts that may win, best first, in two rankings: those that the last comparison
    did not pass over, and those that it did. They are fetched on demand: ``count``, then ever more.
    """
    in_full, passed_over = ranking_queries(versions is not None)
    keys = asked(workload, target, versions)

    def rows(query: Select[Any]) -> Iterator[Row[Any]]:
        def fetch(limit: int, offset: int) -> Sequence[Row[Any]]:
            return connection.execute(query, {**keys, "limit": limit, "offset": offset}).all()

        return in_pieces(fetch, count)

    return rows(in_full), rows(passed_over)


def asked(
    workload: Workload, target: Target, versions: Collection[str] | None = None
) -> dict[str, Any]:
    """Return the parameters of a query about ``KEYS_ASKED``."""
    keys: dict[str, Any] = {"workload": workload.key, "target": target.fingerprint}
    return keys if versions is None else keys | {"versions": list(versions)}


def best_of(pair: Any, comparison: Any, versions: _Versions = None) -> ScalarSelect[int]:
    """Return the id of the best attempt of a pair: the better one of the two rankings' first.

    ``comparison`` is the row of its last comparison; both may be columns of an outer query.
    """
    ranked = measurements.alias("ranked")
    behind = _passed_over(ranked, comparison)

    def first_of(kind: ColumnElement[bool], factor: float) -> Select[Any]:
        own = (*ranked.c["id", "doubted"], (ranked.c.rank_score * factor).label("rank"))
        query = select(*own).where(*_may_win(ranked, pair, versions), kind).correlate_except(ranked)
        query = query.order_by(*ranked.c["doubted", "rank_score", "id"]).limit(1)
        return select(query.subquery())

    both = union_all(first_of(~behind, 1.0), first_of(behind, PASSED_OVER / HANDICAP)).subquery()
    best = select(both.c.id).order_by(*both.c["doubted", "rank", "id"]).limit(1)
    return best.scalar_subquery()


def last_comparison(pair: Any, versions: _Versions = None) -> ScalarSelect[int]:
    """Return the last row of a pair's last comparison; null if there was none."""
    final = measurements.alias("final")
    query = select(func.max(final.c.id)).where(final.c.pair_id == pair, *compared(final))
    query = query.where(*_of_versions(final, versions)).correlate_except(final)
    return query.scalar_subquery()


def compared(table: Any) -> tuple[ColumnElement[bool], ...]:
    """Return True of an attempt of a comparison that counts."""
    # no parameter, so that the index comparisons serves
    final: ColumnElement[str] = literal_column(f"'{FINAL}'")
    ok = table.c.status == str(Status.OK)
    return table.c.round == final, ok, table.c.doubted.is_(False)


def _passed_over(table: Any, comparison: Any) -> ColumnElement[bool]:
    """Select attempts of a search from before the row of the last ``comparison``."""
    return and_(table.c.round != FINAL, table.c.id < func.coalesce(comparison, 0))


def _may_win(table: Any, pair: Any, versions: _Versions = None) -> tuple[ColumnElement[bool], ...]:
    """Select right attempts of this pair that count as the last of their schedule."""
    since = measurements.alias("since")
    replaced = exists().where(
        since.c.pair_id == table.c.pair_id,
        since.c.schedule_digest == table.c.schedule_digest,
        since.c.id > table.c.id,
        or_(since.c.round != SEARCH, since.c.round == table.c.round),
        since.c.status != str(Status.LOST),
        since.c.doubted.is_(False),
        *_of_versions(since, versions),
    )
    right = table.c.rank_score.is_not(None)
    return table.c.pair_id == pair, right, ~replaced, *_of_versions(table, versions)


def _of_versions(table: Any, versions: _Versions) -> tuple[ColumnElement[bool], ...]:
    return () if versions is None else (table.c.template_version.in_(versions),)


KEYS_ASKED = (
    workloads.c.key == bindparam("workload"),
    targets.c.fingerprint == bindparam("target"),
)
"""True of the workload and target with the keys that are asked for."""

_OWN = measurements.c["id", "schedule_digest", *COLUMNS]
_VERSIONS: BindParameter[Any] = bindparam("versions", expanding=True)


# Found once, and not for each row that is ranked.
_PAIR = (
    select(pairs.c.id)
    .join(workloads, pairs.c.workload_id == workloads.c.id)
    .join(targets, pairs.c.target_id == targets.c.id)
    .where(*KEYS_ASKED)
    .scalar_subquery()
)


# Statements are made once, when they are asked for: to make one takes longer than to run it.


@cache
def _best(of_versions: bool) -> Select[Any]:
    """Return the best attempt of the keys ``workload`` and ``target``, see
    :func:`ranking_queries`."""
    versions = _VERSIONS if of_versions else None
    best = best_of(_PAIR, last_comparison(_PAIR, versions), versions)
    return select(*_OWN).where(measurements.c.id == best)


@cache
def ranking_queries(of_versions: bool = False) -> tuple[Select[Any], Select[Any]]:
    """Make two queries for attempts that may win of the keys ``workload`` and ``target``, best
    first: those that the last comparison did not pass over, and those that it did. They give
    ``limit`` rows after ``offset``, and only ``versions`` of templates if these are given.
    """
    versions = _VERSIONS if of_versions else None
    query = (
        select(*_OWN)
        .where(*_may_win(measurements, _PAIR, versions))
        .order_by(*measurements.c["doubted", "rank_score", "id"])
        .limit(bindparam("limit", type_=Integer))
        .offset(bindparam("offset", type_=Integer))
    )
    passed_over = _passed_over(measurements, last_comparison(_PAIR, versions))
    return query.where(~passed_over), query.where(passed_over)
