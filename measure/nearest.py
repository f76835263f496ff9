"""Asks the tables for what is known of the workloads nearest to one (``measure.distance``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import BindParameter, Connection, Row, bindparam, exists, select

from measure.best_known import RIGHT, best_of, last_comparison
from measure.distance import extents, family, sizes_apart, words_apart
from measure.jsonl import parse_json
from measure.queries import records_query
from measure.schema import measurements, pairs, targets, workloads
from spaces.errors import InputError
from spaces.operators import MAX_EXTENT
from spaces.target import Target
from spaces.workload import Workload


def best_of_nearest(
    connection: Connection, workload: Workload, target: Target, count: int
) -> list[Row[Any]]:
    """The best record of each of the ``count`` nearest other workloads, nearest first."""
    return best_of_pairs(connection, _nearest_pairs(connection, workload, target, count))


def best_of_pairs(connection: Connection, ids: Iterable[int]) -> list[Row[Any]]:
    """The best record of each of these rows of ``pairs`` that has one, in their order."""
    rows = (connection.execute(BEST_OF_PAIR, {"pair": id}).first() for id in ids)
    return [row for row in rows if row is not None]


def _nearest_pairs(
    connection: Connection, workload: Workload, target: Target, count: int
) -> list[int]:
    """The rows of ``pairs`` of the ``count`` nearest other workloads that something is known of,
    nearest first."""
    measured = exists().where(measurements.c.pair_id == pairs.c.id, *RIGHT).correlate(pairs)
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
    words, sizes = as_object(family(workload)), as_object(extents(workload))
    by_words: dict[int, list[tuple[int, str]]] = {}
    for text, members in families.items():
        by_words.setdefault(words_apart(words, as_object(text)), []).extend(members)
    found: list[int] = []
    for apart in sorted(by_words):
        if len(found) >= count:
            break
        ids, texts = zip(*sorted(by_words[apart]), strict=True)
        order = np.argsort(sizes_apart(sizes, as_sizes(texts)), kind="stable")
        found += [ids[i] for i in order]
    return found[:count]


def as_object(text: str) -> dict[str, Any]:
    """The JSON object that a column of ``workloads`` holds; :class:`InputError` if it is none."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise InputError(f"a workload's columns are malformed: {text!r:.80} is no JSON object")
    return value


def as_sizes(texts: Sequence[str]) -> list[dict[str, int]]:
    """The extents that texts hold; thousands are read at once."""
    found = parse_json(f"[{','.join(texts)}]")
    if len(found) != len(texts):
        raise InputError("a workload's columns are malformed: several objects in one")
    if set(map(type, found)) != {dict} or not _are_extents(chain(*map(dict.values, found))):
        raise InputError(f"a workload's columns are malformed: {found!r:.80} are no extents")
    return found


def _are_extents(values: Iterable[Any]) -> bool:
    sizes = list(values)
    kinds = set(map(type, sizes))  # numbers alone can be compared
    return not sizes or (kinds == {int} and min(sizes) > 0 and max(sizes) <= MAX_EXTENT)


_PAIR: BindParameter[Any] = bindparam("pair")
BEST_OF_PAIR = records_query().where(measurements.c.id == best_of(_PAIR, last_comparison(_PAIR)))
"""The best attempt of the row of ``pairs`` that the parameter ``pair`` names."""
