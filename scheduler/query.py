"""Find the best schedule for a workload, and say how it was found.

A *measured* answer is the best schedule on record for this workload and target. A *transferred*
answer comes from the nearest sibling of the target, or from the nearest shape. A sibling is a
machine with other cores or another compiler, or a GPU of the same architecture. The schedule is
changed where the rules here ask for it, and refused if the roofline ranks it far worse here than
there. A *predicted* answer is the best of many random schedules by the roofline, or by a model that
the user gives. So there is always an answer, and it names its provenance.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.costmodel.interfaces import CostModel
from tilewright.costmodel.shortlist import shortlisted
from tilewright.measure.busy import why_busy
from tilewright.measure.estimates import Estimate, latency
from tilewright.measure.tables.file import EmptyDatabaseError
from tilewright.scheduler.earlier_versions import count_earlier, note_on_earlier
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.opening import as_model, opened
from tilewright.scheduler.predictions import PREDICTED, least_estimate, ranked
from tilewright.scheduler.strategies.history import distinct
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.mode import Numerics, as_numerics
from tilewright.spaces.operators import as_workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.settings import Default
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record
    from tilewright.spaces.language import Program

DRAFTED = 1 << 15  # candidates shortlisted, for a learned model to rank the most promising
NEIGHBOURS = 8
LESS_SUITED = 1.5
"""Says how many times farther from the best estimate a schedule may be here than where it was
measured: the nearest shape may be one that another template serves best."""


class Provenance(StrEnum):
    """The way a schedule was found."""

    MEASURED = "measured"
    TRANSFERRED = "transferred"
    PREDICTED = "predicted"


@dataclass(frozen=True)
class Answer:
    """The best schedule known for a workload on a target, from ``space``.

    ``latency`` is in seconds. For a measured schedule it is the score, else an estimate. A
    transferred estimate is the score on the nearest shape, scaled by the roofline. It is None if
    the template reports too little for an estimate. ``trials`` counts the schedules measured of
    this workload and target. ``record`` is the record that a measured or transferred schedule is
    taken from. If nothing is measured, ``measured_for`` names the targets with measurements that
    are this machine with another number of threads.
    """

    space: Space
    schedule: Schedule
    latency: float | None
    provenance: Provenance
    trials: int
    record: Record | None = None
    measured_for: tuple[str, ...] = ()

    def __repr__(self) -> str:
        time = "unknown" if self.latency is None else f"{self.latency * 1e6:.4g} us"
        how = f"{self.provenance}, {time}, {self.trials} trials"
        lines = (f"<Answer {self.workload}", self.target.summary, str(self.schedule), how)
        return brief("\n  ".join(lines) + ">", width=500)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def workload(self) -> Workload:
        """The workload that the schedule computes."""
        return self.space.workload

    @property
    def target(self) -> Target:
        """The target that the schedule runs on."""
        return self.space.target

    @property
    def numerics(self) -> Numerics:
        """The promise about errors that the kernel keeps."""
        return self.space.numerics_of(self.schedule)

    @property
    def doubted(self) -> bool:
        """True if a later run measured another latency; such an answer is the last resort."""
        return self.record is not None and self.record.doubted

    @property
    def estimate(self) -> Estimate | None:
        """The latency of a measured schedule with its interval; None of others."""
        if self.record is None or self.provenance is not Provenance.MEASURED:
            return None
        return latency(self.record.measurement)

    @property
    def note(self) -> str:
        """A remark on all kernels of this template; may be empty."""
        return self.space.templates[self.schedule.template].note

    @property
    def busy(self) -> str:
        """The signs that the machine was busy during the measurement; empty if there are none."""
        return "" if self.record is None else why_busy(self.record.measurement)

    @property
    def gflops(self) -> float | None:
        """10^9 floating-point operations a second, the epilogue's not counted."""
        return None if self.latency is None else self.workload.flops / self.latency / 1e9

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {
            "workload": self.workload.to_json(),
            "target": self.target.to_json(),
            "schedule": self.schedule.to_json(),
            "note": self.note,
            "latency_s": self.latency,
            "latency_interval_s": None if self.estimate is None else self.estimate.ends,
            "gflops": self.gflops,
            "busy": self.busy or None,
            "provenance": str(self.provenance),
            "numerics": str(self.numerics),
            "trials": self.trials,
            "doubted": self.doubted,
            "measured_for": list(self.measured_for),
            "transferred_from": self._source.workload.to_json() if self._source else None,
            "transferred_from_target": self._source.target.to_json() if self._source else None,
        }

    @property
    def _source(self) -> Record | None:
        return self.record if self.provenance is Provenance.TRANSFERRED else None


def query(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path | None = Default.DATABASE,
    model: CostModel | str | Path | None = None,
    numerics: Numerics | str = Numerics.STRICT,
) -> Answer:
    """Find the best schedule for ``workload`` on ``target``, without building it.

    Example::

        answer = query("softmax r=4096 c=1024", "cpu")
        print(answer.provenance, answer.schedule, answer.latency)

    Text is accepted for all: see ``spaces.operators.workload`` and ``spaces.target.detect_target``;
    a database is a path or URL. None is an empty database. A missing or empty one causes a
    :class:`RuntimeWarning`. A ``model``, or the path of one, ranks predicted schedules; the default
    is the roofline. ``numerics`` is ``"strict"`` or ``"fast"``, which allows algorithms with weaker
    bounds on errors (:mod:`spaces.numerics.mode`). Raises :class:`InputError` for a foreign or
    damaged database or model, and for a workload that no template serves.
    """
    with closing(answers(workload, target, database, model, numerics)) as found:
        return next(found)


def answers(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path | None = Default.DATABASE,
    model: CostModel | str | Path | None = None,
    numerics: Numerics | str = Numerics.STRICT,
) -> Generator[Answer, None, None]:
    """Yield all possible answers of :func:`query`, best first.

    Measured schedules come first, each once, then transferred and predicted ones.
    """
    space = space_for(as_workload(workload), as_target(target), as_numerics(numerics))
    ranks = None if model is None else as_model(model)
    if database is None:
        yield from _predicted(space, 0, ranks)
        return
    try:
        with opened(database, create=False) as known:
            trials = known.trials(space.workload, space.target)
            measured = list(_measured(space, known, trials)) if trials else []
            if trials and not measured and (count := _earlier(space, known)):
                warnings.warn(note_on_earlier(count), RuntimeWarning, stacklevel=3)
            yield from measured
            others = () if measured else _other_threads(space, known)
            if others:
                warnings.warn(_but_for(space, others), RuntimeWarning, stacklevel=3)
            for answer in _unmeasured(space, known, trials, ranks):
                yield replace(answer, measured_for=others)
    except EmptyDatabaseError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)
        yield from _predicted(space, 0, ranks)


def untuned(space: Space, database: Database, model: CostModel | None = None) -> list[Schedule]:
    """Return the answers for a workload without measurements: transferred if possible, then
    predicted."""
    trials = database.trials(space.workload, space.target)
    first = next(_unmeasured(space, database, trials, model))
    if first.provenance is Provenance.PREDICTED:
        return [first.schedule]
    predicted = next(_predicted(space, trials, model)).schedule
    return list(dict.fromkeys([first.schedule, predicted]))


def _unmeasured(
    space: Space, database: Database, trials: int, model: CostModel | None
) -> Iterator[Answer]:
    yield from _transferred(space, database, trials)
    yield from _predicted(space, trials, model)


def _measured(space: Space, database: Database, trials: int) -> Iterator[Answer]:
    for record in database.best_few(space.workload, space.target, NEIGHBOURS, space.versions):
        schedule, score = space.ordered(record.schedule), record.measurement.score
        if schedule in space and score is not None:
            yield Answer(space, schedule, score, Provenance.MEASURED, trials, record)


def _earlier(space: Space, database: Database) -> int:
    """Return the number of records of this workload and target from earlier template versions."""
    versions = database.versions(space.workload, space.target)
    return count_earlier(versions.get(space.target.fingerprint, {}), space.is_earlier)


def _other_threads(space: Space, database: Database) -> tuple[str, ...]:
    """Return the targets with measurements that differ from this one only in their number of
    threads."""
    records = database.of_other_threads(space.workload, space.target, space.versions)
    return tuple(record.target.text for record in records)


def _but_for(space: Space, others: Sequence[str]) -> str:
    return (
        f"{space.workload} is not measured for the target {space.target.text}, but it is for "
        f"{', '.join(others)}: ask for that one if a kernel may use so many threads"
    )


def _transferred(space: Space, database: Database, trials: int) -> Iterator[Answer]:
    workload, target = space.workload, space.target
    # of other versions of templates
    older = database.best_few(workload, target, NEIGHBOURS) if trials else []
    siblings = database.of_siblings(workload, target, space.versions)
    for record in chain(older, siblings, database.nearest(workload, target, NEIGHBOURS)):
        schedule = space.nearest(record.schedule, np.random.default_rng(0))
        there = _space_of(record, space)
        score = record.measurement.score
        if schedule is not None and record.schedule in there and score is not None:
            longer = _estimate(space, schedule) / _estimate(there, record.schedule)
            if longer > LESS_SUITED * least_estimate(space) / least_estimate(there):
                continue
            expected = _known_or_none(score * longer)
            yield Answer(space, schedule, expected, Provenance.TRANSFERRED, trials, record)


def _space_of(record: Record, here: Space) -> Space:
    """Return the space of the record's workload and target; ``here`` if it is that one (it is slow
    to make)."""
    if (record.workload, record.target) == (here.workload, here.target):
        return here
    return space_for(record.workload, record.target)


def _estimate(space: Space, schedule: Schedule) -> float:
    return float(roofline(space.target).latency(space, space.rows([schedule]))[0])


def _predicted(space: Space, trials: int, model: CostModel | None) -> Iterator[Answer]:
    found = ranked(space) if model is None else _ranked_by(model, space)
    if not found:
        raise InputError(f"no valid schedule was found for {space.workload}")
    for schedule, expected in found:
        yield Answer(space, schedule, _known_or_none(expected), Provenance.PREDICTED, trials)


def _ranked_by(model: CostModel, space: Space) -> list[tuple[Schedule, float]]:
    """Return the schedules that ``model`` ranks first, with the roofline's estimates."""
    drawn = space.sample(np.random.default_rng(0), DRAFTED)
    population, _ = shortlisted(space, drawn, roofline(space.target), model)
    rows = distinct(population)[:PREDICTED]
    schedules = [space.schedule(population[row]) for row in rows]
    return [(schedule, _estimate(space, schedule)) for schedule in schedules]


def _known_or_none(latency: float) -> float | None:
    return None if np.isnan(latency) else float(latency)
