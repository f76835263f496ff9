"""Asks the tables what is known of other shapes, operators and devices that can serve a workload.

Whoever shares a template with it can: its schedules mean the same there. Nearest are those that
differ in the fewest words (:mod:`measure.tables.likeness.distance`), the operator's name included,
and of these the ones whose shape and device together differ least.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, exists, select

from measure.tables.best_known import RIGHT
from measure.tables.likeness.distance import extents, family, sizes_apart, words_apart
from measure.tables.likeness.nearest import as_object, as_sizes
from measure.tables.rows import target_from_column
from measure.tables.schema import measurements, pairs, targets, workloads
from spaces.errors import InputError
from spaces.target import Target

if TYPE_CHECKING:
    from spaces.workloads.workload import Workload


def related_pairs(
    connection: Connection, workload: Workload, target: Target, versions: Collection[str]
) -> list[int]:
    """The rows of ``pairs`` of other workloads, or of other targets of the same kind, of which
    right schedules of these ``versions`` of templates are known; nearest first."""
    import numpy as np

    devices = _devices_apart(connection, target)
    measured = exists().where(
        measurements.c.pair_id == pairs.c.id,
        measurements.c.template_version.in_(versions),
        *RIGHT,
    )
    query = (
        select(pairs.c.id, pairs.c.target_id, *workloads.c["operator", "family", "extents"])
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(
            pairs.c.target_id.in_(devices),
            (workloads.c.key != workload.key) | (targets.c.fingerprint != target.fingerprint),
            measured.correlate(pairs),
        )
        .order_by(pairs.c.id)
    )
    rows = connection.execute(query).all()
    if not rows:
        return []
    words = _words(workload.operator, family(workload))
    families = {(row.operator, row.family) for row in rows}
    unlike = {named: words_apart(words, _words(*named)) for named in families}
    sizes = as_sizes([row.extents for row in rows])
    apart = np.hypot(
        sizes_apart(as_object(extents(workload)), sizes), [devices[row.target_id] for row in rows]
    )
    order = np.lexsort([apart, [unlike[row.operator, row.family] for row in rows]])
    return [rows[i].id for i in order]


def _words(operator: str, family: str) -> dict[str, Any]:
    return {**as_object(family), "operator": operator}


def _devices_apart(connection: Connection, target: Target) -> dict[int, float]:
    """How far each device of the kind of ``target`` is from it, by its row of ``targets``: the
    distance of the numbers in their descriptions, as that of extents."""
    found: dict[int, Target] = {}
    for id, text in connection.execute(select(*targets.c["id", "description"])):
        try:
            other = target_from_column(text)
        except InputError:  # whoever reads its records is told
            continue
        if other.kind == target.kind:
            found[id] = other
    apart = sizes_apart(_numbers(target), [_numbers(other) for other in found.values()])
    return dict(zip(found, apart.tolist(), strict=True))


def _numbers(target: Target) -> dict[str, Any]:
    return {name: v for name, v in target.to_json().items() if type(v) in (int, float)}
