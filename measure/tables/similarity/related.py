"""Query records of other shapes, operators and devices that can serve a workload.

A workload that shares a template with it can: schedules mean the same there. The nearest ones
differ in the fewest words (:mod:`measure.tables.similarity.distance`), the operator's name
included; among these, shape and device together differ least.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, exists, select

from tilewright.measure.tables.best_known import RIGHT
from tilewright.measure.tables.rows import target_from_column
from tilewright.measure.tables.schema import measurements, pairs, targets, workloads
from tilewright.measure.tables.similarity.distance import (
    extents,
    family,
    size_distance,
    word_distance,
)
from tilewright.measure.tables.similarity.nearest import as_object, as_sizes
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


def related_pairs(
    connection: Connection, workload: Workload, target: Target, versions: Collection[str]
) -> list[int]:
    """Return the rows of ``pairs`` of other workloads, or of other targets of the same kind, of
    which right schedules of these ``versions`` of templates are known; nearest first."""
    import numpy as np

    every = _readable(connection.execute(select(*targets.c["id", "description"])))
    devices = _apart(target, {id: other for id, other in every if other.kind == target.kind})
    query = (
        select(pairs.c.id, pairs.c.target_id, *workloads.c["operator", "family", "extents"])
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(
            pairs.c.target_id.in_(devices),
            (workloads.c.key != workload.key) | (targets.c.fingerprint != target.fingerprint),
            _has_right(versions),
        )
        .order_by(pairs.c.id)
    )
    rows = connection.execute(query).all()
    if not rows:
        return []
    words = _words(workload.operator, family(workload))
    families = {(row.operator, row.family) for row in rows}
    unlike = {named: word_distance(words, _words(*named)) for named in families}
    sizes = as_sizes([row.extents for row in rows])
    apart = np.hypot(
        size_distance(as_object(extents(workload)), sizes), [devices[row.target_id] for row in rows]
    )
    order = np.lexsort([apart, [unlike[row.operator, row.family] for row in rows]])
    return [rows[i].id for i in order]


def sibling_pairs(
    connection: Connection, workload: Workload, target: Target, versions: Collection[str]
) -> list[int]:
    """Return the rows of ``pairs`` of this workload on siblings of ``target``, of which right
    schedules of these ``versions`` of templates are known; the nearest sibling first."""
    devices = _devices(connection, workload, versions)
    siblings = {id: other for id, other in devices if target.is_sibling(other)}
    apart = _apart(target, siblings)
    return sorted(siblings, key=apart.__getitem__)


def thread_pairs(
    connection: Connection, workload: Workload, target: Target, versions: Collection[str]
) -> list[int]:
    """Return the rows of ``pairs`` of this workload on the machine of ``target`` for kernels of
    other numbers of threads, of which right schedules of these ``versions`` of templates are
    known."""
    devices = _devices(connection, workload, versions)
    return [id for id, other in devices if target.differs_in_threads(other)]


def _devices(
    connection: Connection, workload: Workload, versions: Collection[str]
) -> Iterator[tuple[int, Target]]:
    """Return the rows of ``pairs`` of this workload of which right schedules are known, and their
    targets."""
    query = (
        select(pairs.c.id, targets.c.description)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(workloads.c.key == workload.key, _has_right(versions))
        .order_by(pairs.c.id)
    )
    return _readable(connection.execute(query))


def _has_right(versions: Collection[str]) -> ColumnElement[bool]:
    """Select rows of ``pairs`` that have right schedules of these versions of templates."""
    right = exists().where(
        measurements.c.pair_id == pairs.c.id,
        measurements.c.template_version.in_(versions),
        *RIGHT,
    )
    return right.correlate(pairs)


def _words(operator: str, family: str) -> dict[str, Any]:
    return {**as_object(family), "operator": operator}


def _readable(rows: Iterable[Any]) -> Iterator[tuple[int, Target]]:
    """Yield the numbers with the devices described beside them."""
    for number, text in rows:
        try:
            yield number, target_from_column(text)
        except InputError:  # whoever reads its records is told
            continue


def _apart(target: Target, devices: Mapping[int, Target]) -> dict[int, float]:
    """Say how far each of the devices is from ``target``: the distance of the numbers in their
    descriptions, as that of extents."""
    apart = size_distance(_numbers(target), [_numbers(other) for other in devices.values()])
    return dict(zip(devices, apart.tolist(), strict=True))


def _numbers(target: Target) -> dict[str, Any]:
    return {name: v for name, v in target.to_json().items() if type(v) in (int, float)}
