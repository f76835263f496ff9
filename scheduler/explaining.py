"""Explain a trained model by its features, and a workload by its measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.costmodel.dataset import Group, group_examples
from tilewright.costmodel.explaining.explanation import CLEAR, Explanation, explain
from tilewright.costmodel.explaining.levels import Level, levels
from tilewright.costmodel.explaining.separation import Separation, separations
from tilewright.costmodel.feature_names import describe
from tilewright.costmodel.model import XGBoostModel
from tilewright.scheduler.machine import measured_peaks
from tilewright.scheduler.training import examples
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.rules.rejection import Rejections, rejections
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database

MOST_ROWS = 256  # schedules that a model is explained on: of a large one each takes 50 ms


@dataclass(frozen=True)
class ModelExplained:
    """The features that matter to a model, judged on the schedules that ``source`` names.

    ``speed`` explains predicted speed, and ``validity`` whether a schedule is predicted to run.
    ``validity`` is None if the model has seen no failure.
    """

    source: str
    schedules: int
    workloads: list[str]
    speed: Explanation
    validity: Explanation | None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object, the most important feature first."""
        return {
            "source": self.source,
            "schedules": self.schedules,
            "workloads": self.workloads,
            "mean_prediction": self.speed.base,
            "features": _features(self.speed),
            "validity": None
            if self.validity is None
            else {"mean_log_odds": self.validity.base, "features": _features(self.validity)},
        }


def _features(found: Explanation) -> list[dict[str, Any]]:
    total = found.importance.sum() or 1.0
    return [
        {
            "feature": found.names[i],
            "mean_absolute_contribution": float(found.importance[i]),
            "share": float(found.importance[i] / total),
            "direction": found.direction(i),
            **asdict(describe(found.names[i])),
        }
        for i in map(int, found.order)
    ]


@dataclass(frozen=True)
class WorkloadExplained:
    """Conclusions on a space from the measurements of one workload on one target.

    ``ran`` and ``failed`` count schedules, ``failures`` attempts by kind of error. ``levels`` are
    of the best schedule, which takes ``latency`` seconds; ``peaks_measured`` tells whether they are
    compared with what the machine was seen to do, or with nominal rates.
    """

    workload: Workload
    target: Target
    ran: int
    failed: int
    failures: dict[str, int]
    decisions: list[Separation]
    rules: list[Rejections]
    schedule: Schedule
    latency: float
    levels: list[Level]
    peaks_measured: bool

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object."""
        return {
            "workload": self.workload.to_json(),
            "target": self.target.to_json(),
            "ran": self.ran,
            "failed": self.failed,
            "failures": self.failures,
            "decisions": [asdict(each) for each in self.decisions],
            "rules": [asdict(each) for each in self.rules],
            "best": {"schedule": self.schedule.to_json(), "latency_s": self.latency},
            "levels": [asdict(each) for each in self.levels],
            "peaks_measured": self.peaks_measured,
        }


def explain_model(
    path: Path,
    target: Target,
    database: Database | None = None,
    workload: Workload | None = None,
) -> ModelExplained:
    """Rank the features by how much they matter to the model at ``path``.

    The model is judged on at most ``MOST_ROWS`` schedules. They are those that ``database`` has
    measured, of ``workload`` or of all. Without a database they are random ones on ``target``, of
    ``workload`` or of the workloads that the model was trained on. Raises :class:`InputError` if
    there are none.
    """
    model = XGBoostModel.load(path)
    if database is not None:
        parts, source = _measured(database, workload), "measured schedules"
    else:
        asked = [workload] if workload else model.workloads
        parts, source = _sampled(asked, target), f"random schedules on {target.summary}"
        if not parts:
            raise InputError(
                f"no workload that {path} was trained on has schedules on {target.summary}; name "
                "another target, a workload, or a database"
            )
    speed, validity = explain(model, parts)
    workloads = sorted({str(space.workload) for space, _ in parts})
    return ModelExplained(source, len(speed.values), workloads, speed, validity)


def explain_workload(database: Database, workload: Workload, target: Target) -> WorkloadExplained:
    """Explain a workload on a target: failures, decisions that matter, rules, distance to roofs.

    Only measurements in ``database`` count. Raises :class:`InputError` if none of its schedules
    ran.
    """
    space = space_for(workload, target)
    groups, _ = group_examples(examples(database, workload, target), lambda *_: space)
    best = next(
        (r for r in database.best_few(workload, target, 8, space.versions) if r.schedule in space),
        None,
    )
    if not groups or best is None or best.measurement.score is None:
        raise InputError(
            f"the database has no schedule of {workload} that ran on {target.summary}; "
            "tilewright list prints what it has"
        )
    [group] = groups
    peaks = measured_peaks(target)
    failed = int(np.isnan(group.latency).sum())
    return WorkloadExplained(
        workload=workload,
        target=target,
        ran=len(group.latency) - failed,
        failed=failed,
        failures=_failures(database, workload, target),
        decisions=separations(group),
        rules=rejections(space),
        schedule=space.ordered(best.schedule),
        latency=best.measurement.score,
        levels=levels(space, best.schedule, best.measurement.score, peaks),
        peaks_measured=peaks is not None,
    )


def in_words(direction: float, better: str, worse: str) -> str:
    """Return the words for the effect of a larger value of a feature, from
    :meth:`Explanation.direction`."""
    if abs(direction) < CLEAR:
        return "both ways"
    return f"larger is {better if direction > 0 else worse}"


def _failures(database: Database, workload: Workload, target: Target) -> dict[str, int]:
    kinds = Counter(
        str(record.measurement.error_kind)
        for record in database.records(workload, target)
        if record.measurement.error_kind is not None and not record.measurement.lost
    )
    return dict(kinds.most_common())


def _measured(database: Database, workload: Workload | None) -> list[tuple[Space, Population]]:
    groups, _ = group_examples(examples(database, workload), space_for)
    if not groups:
        what = "schedule" if workload is None else f"schedule of {workload}"
        raise InputError(f"the database has no {what} to explain the model on")
    few = _few(groups)
    return [(group.space, _drawn(group, len(few))) for group in few]


def _few(items: Sequence[Any]) -> Sequence[Any]:
    """Return as many as may have a schedule each, evenly among all."""
    return items[:: max(1, -(-len(items) // MOST_ROWS))]


def _drawn(group: Group, groups: int) -> Population:
    """Return a fair share of the rows that may be explained."""
    most = max(1, MOST_ROWS // groups)
    order = np.random.default_rng(0).permutation(len(group.population))
    return group.population[np.sort(order[:most])]


def _sampled(workloads: Sequence[Workload], target: Target) -> list[tuple[Space, Population]]:
    generator = np.random.default_rng(0)
    spaces = []
    for workload in _few(workloads):
        try:
            spaces.append(space_for(workload, target))
        except InputError:
            if len(workloads) == 1:
                raise
    most = max(1, MOST_ROWS // max(1, len(spaces)))
    return [(space, space.sample(generator, most)) for space in spaces]
