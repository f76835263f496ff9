"""Read what a database knows of each workload and target that a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.dataset import Group, Places, group_examples
from tilewright.costmodel.explaining.separation import Separation, separations
from tilewright.costmodel.interfaces import Example
from tilewright.costmodel.roofs.peaks import Peaks, peaks_for
from tilewright.costmodel.roofs.roofline import ideal_seconds
from tilewright.measure.estimates import Estimate, latency, over_rival, rival_seconds
from tilewright.measure.records.measurement import NUMPY, Measurement
from tilewright.measure.records.ranking import SEARCH
from tilewright.scheduler.garbage import uncollected
from tilewright.scheduler.machine import measured_peaks
from tilewright.scheduler.report.plausible import plausible
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import parameters_of, workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.validation.nearest import suggestion
from tilewright.spaces.workloads.spelling import short_text
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record
    from tilewright.measure.records.run import Run
    from tilewright.spaces.kernel import Kernel

LEADERS = 10
"""Schedules that a report lists."""
KINDS_OF_ORIGINS = {
    "seed": ("untuned", "earlier", "enqueued", "resumed"),
    "random": ("random", "enumerated"),
    "model": ("immigrant",),
    "mutation": ("neighbour", "child"),
    "transfer": ("starter",),
}
"""Groups of the steps that propose schedules; all others are ``other``."""
_KINDS = {name: kind for kind, names in KINDS_OF_ORIGINS.items() for name in names}


@dataclass(frozen=True)
class Material:
    """The records of one workload on one target, as they came, with their runs by key, and the
    ``best`` few, the best first, each schedule once. ``torch`` is the run of the last comparison
    with torch's compiled code, if there was one; ``graphs`` are notes on compiled models that it is
    a part of."""

    workload: Workload
    target: Target
    records: Sequence[Record]
    runs: dict[str, Run]
    best: Sequence[Record]
    torch: Run | None = None
    graphs: Sequence[Run] = ()

    @cached_property
    def name(self) -> str:
        """The workload as people write it."""
        return short_text(self.workload)

    @cached_property
    def searched(self) -> list[Record]:
        """The trials of the search, the machine's failures left out."""
        return [record for _, record in self.numbered]

    @cached_property
    def numbered(self) -> list[tuple[int, Record]]:
        """The same with the number of the attempt, from 1."""
        return [
            (number, r)
            for number, r in enumerate(self.records, 1)
            if r.measurement.round == SEARCH and not r.measurement.lost
        ]

    @cached_property
    def compared(self) -> list[Record]:
        """The attempts of comparisons."""
        return [r for r in self.records if r.measurement.round != SEARCH and r.measurement.ok]

    @cached_property
    def origins(self) -> dict[Schedule, str]:
        """The step that proposed each schedule to be measured first; comparisons are none."""
        found: dict[Schedule, str] = {}
        for record in self.records:
            if record.measurement.round == SEARCH and record.proposal is not None:
                found.setdefault(record.schedule, record.proposal.origin)
        return found

    @property
    def winner(self) -> Measurement | None:
        """The measurement of the best schedule."""
        return self.best[0].measurement if self.best else None

    @cached_property
    def latency(self) -> Estimate | None:
        """The latency of the best in seconds, with its interval where samples tell one."""
        if self.winner is None or self.winner.score is None:
            return None
        score = self.winner.score
        return latency(self.winner) or Estimate(score, score, score)

    @cached_property
    def over_rival(self) -> Estimate | None:
        """Speed-up over NumPy's product, where that was timed."""
        if self.winner is None or self.latency is None:
            return None
        if found := over_rival(self.winner, NUMPY):
            return found
        theirs = self.rival
        if theirs is None or rival_seconds(self.winner, NUMPY) is not None:
            return None
        ours = self.latency
        return Estimate(theirs / ours.value, theirs / ours.high, theirs / ours.low)

    @property
    def over_torch(self) -> float | None:
        """Speed-up over torch's compiled code, where :func:`torch.compile` compared them."""
        if self.torch is None:
            return None
        ours = plausible(self.torch.configuration.get("ours_seconds"))
        theirs = plausible(self.torch.library_seconds)
        return theirs / ours if ours and theirs else None

    @property
    def over_fastest(self) -> tuple[str, Estimate] | None:
        """The fastest rival that was timed, and the speed-up over it."""
        found = [("NumPy", self.over_rival)] if self.over_rival else []
        if (torch := self.over_torch) is not None:
            found.append(("torch", Estimate(torch, torch, torch)))
        return min(found, key=lambda each: each[1].value, default=None)

    @cached_property
    def rival(self) -> float | None:
        """The latency of NumPy's product in seconds: timed in turns with the best, or once."""
        timed = rival_seconds(self.winner, NUMPY) if self.winner else None
        known = [run.library_seconds for run in self.runs.values() if run.library_seconds]
        return timed or (known[-1] if known else None)

    @cached_property
    def peaks(self) -> Peaks | None:
        """The peak rates of the target; None where its description is of no use."""
        try:
            return peaks_for(self.workload, self.target, measured_peaks(self.target))
        except (InputError, ArithmeticError, ValueError):
            return None

    @cached_property
    def roof(self) -> float | None:
        """The seconds below which no schedule is expected, None where that is not known."""
        try:
            found = ideal_seconds(self.workload, self.peaks) if self.peaks else 0.0
        except (ArithmeticError, ValueError):
            return None
        return found if 0 < found < float("inf") else None

    @cached_property
    def of_roof(self) -> float | None:
        """The speed of the best as a share of the roof's."""
        return self.roof / self.latency.value if self.roof and self.latency else None

    @cached_property
    def space(self) -> Space | None:
        """The schedules that there are now; None where no template serves the workload."""
        try:
            return space_for(self.workload, self.target)
        except InputError:
            return None

    def is_there(self, record: Record) -> bool:
        """Tell whether today's templates have the schedule of a record."""
        space = self.space
        return (
            space is not None
            and record.template_version in space.versions
            and record.schedule in space
        )

    @cached_property
    def kernels(self) -> list[tuple[Schedule, Kernel]]:
        """The best two kernels of those that today's templates make of the best schedules."""
        found: list[tuple[Schedule, Kernel]] = []
        if self.space is None:
            return found
        known = (record.schedule for record in self.best if self.is_there(record))
        try:
            for schedule in islice(known, 2):
                found.append((schedule, self.space.lower(schedule)))
        except InputError:
            pass
        return found

    @cached_property
    def _places(self) -> Places:
        return Places()

    def rows(self, schedules: Sequence[Schedule]) -> list[np.ndarray | None]:
        """Return the row of each schedule in a population; None for one that is no point of the
        space."""
        return self._places(self.space, schedules) if self.space else [None] * len(schedules)

    @cached_property
    def group(self) -> Group | None:
        """The schedules of the search as a population with their latencies; None without a space,
        or where none ran."""
        space = self.space
        if space is None:
            return None
        examples = [
            Example(self.workload, self.target, r.schedule, r.measurement.score)
            for r in self.searched
            if r.template_version in space.versions and not r.doubted
        ]
        groups, _ = group_examples(examples, lambda *_: space, self._places)
        return groups[0] if groups and np.isfinite(groups[0].latency).any() else None

    @cached_property
    def separations(self) -> list[Separation]:
        """Say how each decision separates the fast from the slow; none without a space."""
        return [] if self.group is None else separations(self.group)

    @cached_property
    def seconds(self) -> float:
        """The seconds that the runs lasted, together."""
        return sum(max(0.0, run.heartbeat - run.started_at) for run in self.runs.values())


def origin_of(record: Record) -> str:
    """Return the group of the step that proposed a record's schedule."""
    return _KINDS.get(record.proposal.origin, "other") if record.proposal else "other"


@uncollected()
def read_materials(
    database: Database, words: Sequence[str] = (), may_be_empty: bool = False
) -> list[Material]:
    """Read all that a report of these workloads shows; of all where none is named.

    A word is an operator's name or a workload's text. Raises :class:`InputError` for one that the
    database has no attempt of, and for a database without any, unless it ``may_be_empty``.
    """
    pairs = database.pairs()
    if not pairs and may_be_empty:
        return []
    if not pairs:
        raise nothing_to_report(database)
    wanted = _wanted([known for known, _ in pairs], words)
    runs: dict[str, Run] = {run.key: run for run in database.runs()}
    notes = _Notes.among(runs.values())
    found = [
        _material(database, known, target, runs, notes)
        for known, target in pairs
        if wanted is None or known.key in wanted
    ]
    return [material for material in found if material.records]


def nothing_to_report(database: Database) -> InputError:
    """Return the error of a database without trials."""
    return InputError(
        f"database {database.name} has no trials to report; tilewright tune makes some"
    )


def texts_of(words: Sequence[str]) -> Iterator[str]:
    """Yield the workloads that words of a command line name: ``name=value`` words belong to the
    operator before them."""
    text = ""
    for word in words:
        is_parameter = "=" in word and " " not in word.strip()
        if text and is_parameter:
            text += f" {word}"
            continue
        if text:
            yield text
        text = word
    if text:
        yield text


def _wanted(known: Sequence[Workload], words: Sequence[str]) -> set[str] | None:
    """Return the keys of the workloads that are named; None for all."""
    if not words:
        return None
    wanted: set[str] = set()
    for text in texts_of(words):
        found = {each.key for each in known if text in (each.operator, str(each), short_text(each))}
        found |= {key for key in _keys(text) if key in {each.key for each in known}}
        if not found:
            names = dict.fromkeys(each for w in known for each in (w.operator, short_text(w)))
            near = suggestion(text, names)
            raise InputError(
                f"the database has no trial of {text[:60]!r}; "
                f"{near}tilewright list prints what it has"
            )
        wanted |= found
    return wanted


def _keys(text: str) -> Iterator[str]:
    """Yield the key of the workload that a text spells, if it spells one."""
    operator, *parameters = text.split() if '"' not in text else [text]
    try:
        yield workload(operator, **parameters_of(parameters)).key
    except InputError:
        return


def material_of(
    database: Database, known: Workload, target: Target, runs: dict[str, Run] | None = None
) -> Material:
    """Read what a database knows of one workload on one target; ``runs`` are all that it has, by
    key, if they were read."""
    runs = {run.key: run for run in database.runs()} if runs is None else runs
    return _material(database, known, target, runs, _Notes.among(runs.values()))


def _material(
    database: Database,
    known: Workload,
    target: Target,
    runs: Mapping[str, Run],
    notes: _Notes,
) -> Material:
    records = list(database.records(known, target))
    own = {r.run: runs[r.run] for r in records if r.run in runs}
    best = database.best_few(known, target, LEADERS)
    about = (known.key, target.fingerprint)
    torch, graphs = notes.torch.get(about), notes.graphs.get(about, ())
    return Material(known, target, records, own, best, torch, graphs)


@dataclass(frozen=True)
class _Notes:
    """Notes by the key of a workload and the fingerprint of a target: the last comparison with
    torch, and those on graphs of compiled models."""

    torch: Mapping[tuple[str, str], Run]
    graphs: Mapping[tuple[str, str], Sequence[Run]]

    @classmethod
    def among(cls, runs: Iterable[Run]) -> _Notes:
        torch: dict[tuple[str, str], Run] = {}
        graphs: dict[tuple[str, str], list[Run]] = {}
        for run in runs:
            about = (run.workload.key, run.target.fingerprint)
            if run.configuration.get("rival") == "torch":
                torch[about] = run
            elif "graph" in run.configuration and run.is_note:
                graphs.setdefault(about, []).append(run)
        return cls(torch, graphs)
