"""Asks the tables for what is known of the workloads nearest to one
(``measure.tables.similarity.distance``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, Connection, Select, bindparam, select

from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.tables.best_known import best_of, last_comparison
from tilewright.measure.tables.queries import records_query
from tilewright.measure.tables.schema import measurements, pairs, targets, workloads
from tilewright.measure.tables.similarity.distance import (
    extents,
    family,
    size_distance,
    word_distance,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


def nearest_pairs(connection: Connection, workload: Workload, target: Target) -> Iterator[int]:
    """Return the rows of ``pairs`` of other workloads that were tried on a target, nearest
    first."""
    query = (
        select(pairs.c.id, workloads.c.family, workloads.c.extents)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(
            targets.c.fingerprint == target.fingerprint,
            workloads.c.operator == workload.operator,
            workloads.c.key != workload.key,
            pairs.c.trials > 0,
        )
    )
    families: dict[str, list[tuple[int, str]]] = {}
    for id, words, sizes in connection.execute(query).all():
        families.setdefault(words, []).append((id, sizes))
    return _nearest(families, workload)


def _nearest(families: dict[str, list[tuple[int, str]]], workload: Workload) -> Iterator[int]:
    """Yield the ids by their distance to ``workload``; sizes are compared as far down as is asked
    for."""
    import numpy as np

    words, sizes = as_object(family(workload)), as_object(extents(workload))
    by_words: dict[int, list[tuple[int, str]]] = {}
    for text, members in families.items():
        by_words.setdefault(word_distance(words, as_object(text)), []).extend(members)
    for apart in sorted(by_words):
        ids, texts = zip(*sorted(by_words[apart]), strict=True)
        order = np.argsort(size_distance(sizes, as_sizes(texts)), kind="stable")
        yield from (ids[i] for i in order)


def as_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a column of ``workloads`` holds; :class:`InputError` if it is
    none."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise InputError(f"a workload's columns are malformed: {text!r:.80} is no JSON object")
    return value


def as_sizes(texts: Sequence[str]) -> list[dict[str, int]]:
    """Return the extents that texts hold; thousands are read at once."""
    found = parse_json(f"[{','.join(texts)}]")
    if len(found) != len(texts):
        raise InputError("a workload's columns are malformed: several objects in one")
    if set(map(type, found)) != {dict} or not _are_extents(chain(*map(dict.values, found))):
        raise InputError(f"a workload's columns are malformed: {found!r:.80} are no extents")
    return found


def _are_extents(values: Iterable[Any]) -> bool:
    from tilewright.spaces.workloads.words import MAX_EXTENT

    sizes = list(values)
    kinds = set(map(type, sizes))  # numbers alone can be compared
    return not sizes or (kinds == {int} and min(sizes) > 0 and max(sizes) <= MAX_EXTENT)


@cache
def best_of_pair() -> Select[Any]:
    """Return the best attempt of the row of ``pairs`` that the parameter ``pair`` names."""
    pair: BindParameter[Any] = bindparam("pair")
    return records_query().where(measurements.c.id == best_of(pair, last_comparison(pair)))
