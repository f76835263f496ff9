"""Queries on the tables of the tuning database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, and_, bindparam, func, or_, select

from tilewright.measure.records.measurement import Status
from tilewright.measure.records.run import CHECKED
from tilewright.measure.tables.best_known import KEYS_ASKED, asked, best_of, compared
from tilewright.measure.tables.rows import COLUMNS, RUN_COLUMNS
from tilewright.measure.tables.schema import measurements, pairs, runs, targets, workloads
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


def records_query(workload: Workload | None = None, target: Target | None = None) -> Select[Any]:
    """Return all records, of one workload or target or of all."""
    query = _joined(select(*measurements.c["id", "schedule_digest", *COLUMNS]), measurements)
    if workload is not None:
        query = query.where(workloads.c.key == workload.key)
    if target is not None:
        query = query.where(targets.c.fingerprint == target.fingerprint)
    return query


def runs_query(session: str | None = None) -> Select[Any]:
    """Return all runs, or those of a session; a run's key is one, too."""
    query = _joined(select(*runs.c["id", *RUN_COLUMNS]), runs)
    if session is None:
        return query
    return query.where(or_(runs.c.session == session, runs.c.key == session))


def recent_runs_query(count: int, alive_since: float) -> Select[Any]:
    """Return the last ``count`` runs, notes left out, and those that have not ended and were alive
    since a Unix time."""
    is_run = or_(runs.c.ended_at.is_(None), runs.c.ended_at != runs.c.started_at)
    last = select(runs.c.id).where(is_run).order_by(runs.c.id.desc()).limit(count)
    is_alive = and_(runs.c.ended_at.is_(None), runs.c.heartbeat >= alive_since)
    return runs_query().where(or_(is_alive, runs.c.id.in_(last)))


def trials(connection: Connection, workload: Workload, target: Target) -> int:
    """Return the number of schedules tried."""
    return connection.execute(TRIALS, asked(workload, target)).scalar() or 0


def versions_query(workload: Workload | None, target: Target | None) -> Select[Any]:
    """Query the number of attempts with each version of a template on each target, of one workload
    and target or of all, without lost ones.
    """
    query = (
        select(targets.c.fingerprint, measurements.c.template_version, func.count())
        .join(pairs, measurements.c.pair_id == pairs.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(measurements.c.status != str(Status.LOST))
        .group_by(targets.c.fingerprint, measurements.c.template_version)
    )
    if workload is not None:
        query = query.join(workloads, pairs.c.workload_id == workloads.c.id)
        query = query.where(workloads.c.key == workload.key)
    if target is not None:
        query = query.where(targets.c.fingerprint == target.fingerprint)
    return query


def summaries_query(since: float | None = None) -> Select[Any]:
    """Return the counts of each pair that there are attempts of (``since`` a Unix time, if one is
    given), with how fast its best record is."""
    last = (
        select(measurements.c.pair_id, func.max(measurements.c.id).label("comparison"))
        .where(*compared(measurements))
        .group_by(measurements.c.pair_id)
        .subquery()
    )
    query = (
        select(
            *pairs.c["trials", "failures", "lost"],
            *workloads.c["text", "flops"],
            *_TARGET,
            *measurements.c["id", "score", "doubted"],
        )
        .select_from(pairs)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .outerjoin(last, last.c.pair_id == pairs.c.id)
        .outerjoin(measurements, measurements.c.id == best_of(pairs.c.id, last.c.comparison))
        .where(_TRIED)
        .order_by(*workloads.c["text", "key"], targets.c.id)
    )
    if since is None:
        return query
    late = select(measurements.c.pair_id).where(measurements.c.started_at >= since)
    return query.where(pairs.c.id.in_(late))


def pairs_query() -> Select[Any]:
    """Return the descriptions of each pair that there are attempts of."""
    return (
        select(pairs.c.id, *_DESCRIPTION)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
        .where(_TRIED)
        .order_by(*workloads.c["text", "key"], targets.c.id)
    )


def _joined(query: Select[Any], table: Any) -> Select[Any]:
    """Return the rows of ``table`` with the descriptions of their workload and target."""
    return (
        query.add_columns(*_DESCRIPTION)
        .join(pairs, table.c.pair_id == pairs.c.id)
        .join(workloads, pairs.c.workload_id == workloads.c.id)
        .join(targets, pairs.c.target_id == targets.c.id)
    )


_TRIED = or_(pairs.c.trials > 0, pairs.c.lost > 0)
_TARGET = (targets.c.fingerprint, targets.c.description.label("target"))
_DESCRIPTION = (
    workloads.c.key.label("workload_key"),
    workloads.c.description.label("workload"),
    *_TARGET,
)

TRIALS = (
    select(pairs.c.trials)
    .join(workloads, pairs.c.workload_id == workloads.c.id)
    .join(targets, pairs.c.target_id == targets.c.id)
    .where(*KEYS_ASKED)
)
"""The number of schedules tried of ``workload`` and ``target``; no row if there is no attempt."""

TRIALS_OF_RUN = select(func.count(measurements.c.schedule_digest.distinct())).where(
    measurements.c.run == bindparam("run"),
    measurements.c.round == "search",
    measurements.c.status != str(Status.LOST),
    func.coalesce(measurements.c.origin, "") != CHECKED,
)
"""The number of schedules that the run with the key ``run`` tried."""
