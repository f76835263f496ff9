"""What a database knows of one workload on one target, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from measure.records.fields import Fields
from measure.tables.rows import target_from_column, workload_from_column
from spaces.errors import InputError
from spaces.target import Target
from spaces.workload import Workload


@dataclass(frozen=True)
class Summary:
    """What a database knows of one workload on one target.

    ``trials`` counts schedules, however often each was measured; ``failures`` failed attempts of
    schedules; ``lost`` attempts that the machine failed. ``score`` is the latency of the best
    schedule in seconds, None if there is none; ``doubted`` whether a run found it false.
    """

    workload: Workload
    target: Target
    trials: int
    failures: int
    lost: int
    score: float | None
    doubted: bool


def summary_from_row(row: Row[Any]) -> Summary:
    """The summary in a row of ``measure.tables.queries.summaries_query``; :class:`InputError` if it
    is malformed."""
    workload, target = workload_from_column(row.workload), target_from_column(row.target)
    if (workload.key, target.fingerprint) != (row.workload_key, row.fingerprint):
        raise InputError("its keys are not those of its contents")
    score = None if row.id is None else Fields({"score": row.score}).number("score")
    if score is not None and score <= 0:
        raise InputError(f"score={score!r} is not allowed; allowed: positive seconds")
    return Summary(workload, target, row.trials, row.failures, row.lost, score, bool(row.doubted))
