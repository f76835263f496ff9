"""What is asked of the tables of the tuning database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    exists,
    or_,
    select,
)

from measure.distance import extents, family, sizes_apart, words_apart
from measure.jsonl import parse_json
from measure.measurement import Status
from measure.rows import COLUMNS, RUN_COLUMNS
from measure.schema import measurements, pairs, runs, targets, workloads
from spaces.errors import InputError
from spaces.operators import MAX_EXTENT
from spaces.target import Target
from spaces.workload import Workload


def records_query(workload: Workload | None = None, target: Target | None = None) -> Select[Any]:
    """All records, of one workload or target or of all."""
    query = _joined(select(*measurements.c["id", "schedule_digest", *COLUMNS]), measurements)
    if workload is not None:
        query = query.where(workloads.c.key == workload.key)
    if target is not None:
        query = query.where(targets.c.fingerprint == target.fingerprint)
    return query


def runs_query() -> Select[Any]:
    """All runs."""
    return _joined(select(*runs.c["id", *RUN_COLUMNS]), runs)


def ranking(
    workload: Workload, target: Target, versions: Collection[str] | None = None
) -> Select[Any]:
    """A workload's attempts on a target that may win, best first.

    ``versions`` asks for schedules of these versions of templates only.
    """
    query = ranking_of(_pair(workload, target))
    if versions is not None:
        query = query.where(measurements.c.template_version.in_(versions))
    return query


def ranking_of(pair: ScalarSelect[int] | BindParameter[int]) -> Select[Any]:
    """The same for a row of ``pairs``."""
    return (
        records_query()
        .where(_may_win(pair))
        .order_by(measurements.c.doubted, measurements.c.rank_score, measurements.c.id)
    )


def trials_query(workload: Workload, target: Target) -> Select[Any]:
    """The number of schedules tried; no row if there is no attempt."""
    return select(pairs.c.trials).where(pairs.c.id == _pair(workload, target))


def summaries_query() -> Select[Any]:
    """The counts of each pair that there are attempts of, with how fast its best record is."""
    ranked = measurements.alias("ranked")
    best = (
        select(ranked.c.id)
        .where(_may_win(pairs.c.id, ranked))
        .order_by(ranked.c.doubted, ranked.c.rank_score, ranked.c.id)
        .limit(1)
        .correlate(pairs)
        .scalar_subquery()
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
        .outerjoin(measurements, measurements.c.id == best)
        .where(or_(pairs.c.trials > 0, pairs.c.lost > 0))
        .order_by(workloads.c.key, targets.c.id)
    )


def nearest_pairs(
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


def _may_win(pair: Any, table: Any = measurements) -> ColumnElement[bool]:
    """Whether an attempt is of this pair, was right, and counts.

    Of a schedule that was compared in the end, only the last comparison counts: who has been
    compared often has been lucky once. What is later is told by the order of rows here, never by
    a clock that came with a record.
    """
    final = measurements.alias("final")
    compared_since = exists().where(
        final.c.pair_id == table.c.pair_id,
        final.c.schedule_digest == table.c.schedule_digest,
        final.c.round == "final",
        final.c.status != str(Status.LOST),
        final.c.doubted.is_(False),
        or_(table.c.round != "final", final.c.id > table.c.id),
    )
    return and_(table.c.pair_id == pair, table.c.rank_score.is_not(None), ~compared_since)


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


def _pair(workload: Workload, target: Target) -> ScalarSelect[int]:
    return (
        select(pairs.c.id)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(workloads.c.key == workload.key, targets.c.fingerprint == target.fingerprint)
        .scalar_subquery()
    )


BEST_OF_PAIR = ranking_of(bindparam("pair", type_=Integer)).limit(1)
"""The best of the row of ``pairs`` that the parameter ``pair`` names."""
