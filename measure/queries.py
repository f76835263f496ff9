"""What is asked of the tables of the tuning database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
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

from measure.distance import extents, family, sizes_apart, words_apart
from measure.jsonl import parse_json
from measure.measurement import Status
from measure.ranking import FINAL, HANDICAP, PASSED_OVER
from measure.rows import COLUMNS, RUN_COLUMNS
from measure.run import CHECKED
from measure.schema import measurements, pairs, runs, targets, workloads
from spaces.errors import InputError
from spaces.operators import MAX_EXTENT
from spaces.target import Target
from spaces.workload import Workload

_Versions = BindParameter[Any] | None


def records_query(workload: Workload | None = None, target: Target | None = None) -> Select[Any]:
    """All records, of one workload or target or of all."""
    query = _joined(select(*measurements.c["id", "schedule_digest", *COLUMNS]), measurements)
    if workload is not None:
        query = query.where(workloads.c.key == workload.key)
    if target is not None:
        query = query.where(targets.c.fingerprint == target.fingerprint)
    return query


def runs_query(session: str | None = None) -> Select[Any]:
    """All runs, or those of a session; a run's key is one, too."""
    query = _joined(select(*runs.c["id", *RUN_COLUMNS]), runs)
    if session is None:
        return query
    return query.where(or_(runs.c.session == session, runs.c.key == session))


def best_row(
    connection: Connection, workload: Workload, target: Target, versions: Collection[str] | None
) -> Row[Any] | None:
    """The best attempt of a workload on a target (``measure.ranking``), of schedules of these
    ``versions`` of templates if they are given."""
    query = BEST if versions is None else BEST_OF_VERSIONS
    return connection.execute(query, _asked(workload, target, versions)).first()


def rankings(
    connection: Connection,
    workload: Workload,
    target: Target,
    versions: Collection[str] | None,
    count: int,
) -> tuple[Iterator[Row[Any]], Iterator[Row[Any]]]:
    """All attempts that may win, best first: those that the last comparison did not pass over, and
    those that it did. They are fetched as they are asked for: ``count``, then ever more."""
    in_full, passed_over = RANKINGS if versions is None else RANKINGS_OF_VERSIONS
    asked = _asked(workload, target, versions)
    return (
        _in_pieces(connection, in_full, asked, count),
        _in_pieces(connection, passed_over, asked, count),
    )


def _in_pieces(
    connection: Connection, query: Select[Any], asked: Mapping[str, Any], count: int
) -> Iterator[Row[Any]]:
    start = 0
    while True:
        rows = connection.execute(query, {**asked, "limit": count, "offset": start}).all()
        yield from rows
        if len(rows) < count:
            return
        start, count = start + count, 2 * count


def best_of_nearest(
    connection: Connection, workload: Workload, target: Target, count: int
) -> list[Row[Any]]:
    """The best record of each of the ``count`` nearest other workloads, nearest first."""
    ids = _nearest_pairs(connection, workload, target, count)
    rows = (connection.execute(BEST_OF_PAIR, {"pair": id}).first() for id in ids)
    return [row for row in rows if row is not None]


def trials(connection: Connection, workload: Workload, target: Target) -> int:
    """The number of schedules tried."""
    return connection.execute(TRIALS, _asked(workload, target)).scalar() or 0


def _asked(
    workload: Workload, target: Target, versions: Collection[str] | None = None
) -> dict[str, Any]:
    keys: dict[str, Any] = {"workload": workload.key, "target": target.fingerprint}
    return keys if versions is None else keys | {"versions": list(versions)}


def summaries_query() -> Select[Any]:
    """The counts of each pair that there are attempts of, with how fast its best record is."""
    last = (
        select(measurements.c.pair_id, func.max(measurements.c.id).label("comparison"))
        .where(*_compared(measurements))
        .group_by(measurements.c.pair_id)
        .subquery()
    )
    return (
        select(
            *pairs.c["trials", "failures", "lost"],
            *_DESCRIPTION,
            *measurements.c["id", "score", "doubted"],
        )
        .select_from(pairs)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .outerjoin(last, last.c.pair_id == pairs.c.id)
        .outerjoin(measurements, measurements.c.id == _best_of(pairs.c.id, last.c.comparison))
        .where(or_(pairs.c.trials > 0, pairs.c.lost > 0))
        .order_by(workloads.c.key, targets.c.id)
    )


def _nearest_pairs(
    connection: Connection, workload: Workload, target: Target, count: int
) -> list[int]:
    """The rows of ``pairs`` of the ``count`` nearest other workloads that something is known of,
    nearest first."""
    measured = exists().where(measurements.c.pair_id == pairs.c.id, *_RIGHT).correlate(pairs)
    query = (
        select(pairs.c.id, workloads.c.family, workloads.c.extents)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(
            targets.c.fingerprint == target.fingerprint,
            workloads.c.operator == workload.operator,
            workloads.c.key != workload.key,
            measured,
        )
    )
    families: dict[str, list[tuple[int, str]]] = {}
    for id, words, sizes in connection.execute(query):
        families.setdefault(words, []).append((id, sizes))
    return _nearest(families, workload, count)


def _nearest(
    families: dict[str, list[tuple[int, str]]], workload: Workload, count: int
) -> list[int]:
    """The ids nearest to ``workload``; sizes are compared only as far down as is needed."""
    words, sizes = _object(family(workload)), _object(extents(workload))
    by_words: dict[int, list[tuple[int, str]]] = {}
    for text, members in families.items():
        by_words.setdefault(words_apart(words, _object(text)), []).extend(members)
    found: list[int] = []
    for apart in sorted(by_words):
        if len(found) >= count:
            break
        ids, texts = zip(*sorted(by_words[apart]), strict=True)
        order = np.argsort(sizes_apart(sizes, _sizes(texts)), kind="stable")
        found += [ids[i] for i in order]
    return found[:count]


def _object(text: str) -> dict[str, Any]:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise InputError(f"a workload's columns are malformed: {text!r:.80} is no JSON object")
    return value


def _sizes(texts: Sequence[str]) -> list[dict[str, int]]:
    """The extents that texts hold; thousands are read at once."""
    found = parse_json(f"[{','.join(texts)}]")
    if len(found) != len(texts):
        raise InputError("a workload's columns are malformed: several objects in one")
    for sizes in found:
        if not isinstance(sizes, dict) or not all(map(_is_extent, sizes.values())):
            raise InputError(f"a workload's columns are malformed: {sizes!r:.80} are no extents")
    return found


def _is_extent(size: object) -> bool:
    return type(size) is int and 0 < size <= MAX_EXTENT


_RIGHT = (measurements.c.rank_score.is_not(None), measurements.c.doubted.is_(False))


# The rule of measure.ranking. What is later is told by the order of rows here, never by a clock
# that came with a record.


def _may_win(table: Any, pair: Any, versions: _Versions = None) -> tuple[ColumnElement[bool], ...]:
    """Whether an attempt is of this pair, was right, and counts as the last of its schedule."""
    since = measurements.alias("since")
    replaced = exists().where(
        since.c.pair_id == table.c.pair_id,
        since.c.schedule_digest == table.c.schedule_digest,
        since.c.id > table.c.id,
        or_(since.c.round == FINAL, since.c.round == table.c.round),
        since.c.status != str(Status.LOST),
        since.c.doubted.is_(False),
        *_of_versions(since, versions),
    )
    right = table.c.rank_score.is_not(None)
    return table.c.pair_id == pair, right, ~replaced, *_of_versions(table, versions)


def _last_comparison(pair: Any, versions: _Versions = None) -> ScalarSelect[int]:
    """The last row of a pair's last comparison; null if there was none."""
    final = measurements.alias("final")
    query = select(func.max(final.c.id)).where(final.c.pair_id == pair, *_compared(final))
    query = query.where(*_of_versions(final, versions)).correlate_except(final)
    return query.scalar_subquery()


def _compared(table: Any) -> tuple[ColumnElement[bool], ...]:
    final: ColumnElement[str] = literal_column(
        f"'{FINAL}'"
    )  # no parameter, so that the index comparisons serves
    ok = table.c.status == str(Status.OK)
    return table.c.round == final, ok, table.c.doubted.is_(False)


def _passed_over(table: Any, comparison: Any) -> ColumnElement[bool]:
    """Whether an attempt is of a search before the row of the last ``comparison``."""
    return and_(table.c.round != FINAL, table.c.id < func.coalesce(comparison, 0))


def _of_versions(table: Any, versions: _Versions) -> tuple[ColumnElement[bool], ...]:
    return () if versions is None else (table.c.template_version.in_(versions),)


def _best_of(pair: Any, comparison: Any, versions: _Versions = None) -> ScalarSelect[int]:
    """The id of the best attempt of a pair: the better one of the two rankings' first.

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


_DESCRIPTION = (
    workloads.c.key.label("workload_key"),
    workloads.c.description.label("workload"),
    targets.c.fingerprint,
    targets.c.description.label("target"),
)


def _joined(query: Select[Any], table: Any) -> Select[Any]:
    """Rows of ``table`` with the descriptions of their workload and target."""
    return (
        query.add_columns(*_DESCRIPTION)
        .join(pairs, table.c.pair_id == pairs.c.id)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
    )


def _rankings(versions: _Versions = None) -> tuple[Select[Any], Select[Any]]:
    query = (
        records_query()
        .where(*_may_win(measurements, _PAIR, versions))
        .order_by(*measurements.c["doubted", "rank_score", "id"])
        .limit(bindparam("limit", type_=Integer))
        .offset(bindparam("offset", type_=Integer))
    )
    passed_over = _passed_over(measurements, _last_comparison(_PAIR, versions))
    return query.where(~passed_over), query.where(passed_over)


def _best(versions: _Versions = None) -> Select[Any]:
    """The best attempt of each pair."""
    comparison = _last_comparison(pairs.c.id, versions)
    return records_query().where(measurements.c.id == _best_of(pairs.c.id, comparison, versions))


# The statements that answer many questions are made once: to make one takes longer than to run it.

_ASKED = (
    workloads.c.key == bindparam("workload"),
    targets.c.fingerprint == bindparam("target"),
)
_PAIR = (
    select(pairs.c.id)
    .join(workloads, pairs.c.workload_id == workloads.c.id)
    .join(targets, pairs.c.target_id == targets.c.id)
    .where(*_ASKED)
    .scalar_subquery()
)
_VERSIONS: BindParameter[Any] = bindparam("versions", expanding=True)

RANKINGS = _rankings()
"""The attempts that may win (``measure.ranking``) of the keys ``workload`` and ``target``, best
first: those that the last comparison did not pass over, and those that it did. ``limit`` of them
after ``offset``."""

RANKINGS_OF_VERSIONS = _rankings(_VERSIONS)
"""The same, of schedules of these ``versions`` of templates only."""

BEST = _best().where(*_ASKED)
"""The best attempt of the keys ``workload`` and ``target``."""

BEST_OF_VERSIONS = _best(_VERSIONS).where(*_ASKED)
"""The same, of schedules of these ``versions`` of templates only."""

BEST_OF_PAIR = _best().where(pairs.c.id == bindparam("pair"))
"""The same of the row of ``pairs`` that the parameter ``pair`` names."""

TRIALS = select(pairs.c.trials).where(pairs.c.id == _PAIR)
"""The number of schedules tried of ``workload`` and ``target``; no row if there is no attempt."""

TRIALS_OF_RUN = select(func.count(measurements.c.schedule_digest.distinct())).where(
    measurements.c.run == bindparam("run"),
    measurements.c.round == "search",
    measurements.c.status != str(Status.LOST),
    func.coalesce(measurements.c.origin, "") != CHECKED,
)
"""The number of schedules that the run with the key ``run`` tried."""
