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
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.measure.tables.file import EmptyDatabaseError, is_path
from tilewright.measure.tables.lookup import UnansweredError, lookup
from tilewright.scheduler.answer import Answer, Provenance
from tilewright.scheduler.earlier_versions import count_earlier, note_on_earlier
from tilewright.scheduler.opening import as_model, opened
from tilewright.spaces.numerics.mode import Numerics, as_numerics
from tilewright.spaces.operators import as_workload
from tilewright.spaces.registry import part_of_space, space_for
from tilewright.spaces.settings import Default, default_database
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.costmodel.interfaces import CostModel
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record
    from tilewright.spaces.language import Program

MOST_ANSWERS = 8
"""Measured schedules that are answered one after the other: a compiler may refuse the first."""


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
    asked = (as_workload(workload), as_target(target), as_numerics(numerics))
    ranks = None if model is None else as_model(model)
    if database is None:
        yield from _predicted(space_for(*asked), ranks)
        return
    measured = False
    for answer in _looked_up(database, *asked):
        measured = True
        yield answer
    space = space_for(*asked)
    try:
        with opened(database, create=False) as known:
            trials = known.trials(space.workload, space.target)
            if trials and not measured:
                found = list(_measured(space, known, trials))
                if not found and (count := _earlier(space, known)):
                    warnings.warn(note_on_earlier(count), RuntimeWarning, stacklevel=3)
                measured = bool(found)
                yield from found
            others = () if measured else _other_threads(space, known)
            if others:
                warnings.warn(_but_for(space, others), RuntimeWarning, stacklevel=3)
            for answer in _unmeasured(space, known, trials, ranks):
                yield replace(answer, measured_for=others)
    except EmptyDatabaseError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)
        yield from _predicted(space, ranks)


def _looked_up(
    database: Database | str | Path, workload: Workload, target: Target, numerics: Numerics
) -> Iterator[Answer]:
    """Yield the measured answers of an SQLite file, found without SQLAlchemy and by the templates
    on record alone: to load all takes most of the time. None where that does not suffice."""
    path = default_database() if database is Default.DATABASE else database
    if not is_path(path):
        return
    try:
        with lookup(path, workload, target) as known:
            templates = dict.fromkeys(version.partition(".")[0] for version in known.versions())
            space = part_of_space(workload, target, templates, numerics)
            if space is None:
                return
            trials, records = known.trials(), known.best_few(MOST_ANSWERS, space.versions)
    except UnansweredError:
        return
    yield from _answers(space, trials, records)


def _unmeasured(
    space: Space, database: Database, trials: int, model: CostModel | None
) -> Iterator[Answer]:
    from tilewright.scheduler.unmeasured import unmeasured  # with estimates, which take a while

    return unmeasured(space, database, trials, model)


def _predicted(space: Space, model: CostModel | None) -> Iterator[Answer]:
    from tilewright.scheduler.unmeasured import predicted

    return predicted(space, 0, model)


def _measured(space: Space, database: Database, trials: int) -> Iterator[Answer]:
    found = database.best_few(space.workload, space.target, MOST_ANSWERS, space.versions)
    return _answers(space, trials, found)


def _answers(space: Space, trials: int, records: Iterable[Record]) -> Iterator[Answer]:
    """Yield the answers of records whose schedules the space still has."""
    for record in records:
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
