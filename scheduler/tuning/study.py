"""Ask for schedules of one workload and tell what they take: the core of the tuner.

A study joins a search and a database. The tuner measures what a study asks for; so may anybody.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.records.measurement import ErrorKind, Measurement, Place, Status
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Run
from tilewright.scheduler.defaults import load_early
from tilewright.scheduler.opening import opened
from tilewright.scheduler.query import MOST_ANSWERS
from tilewright.scheduler.strategies.registry import EVOLUTIONARY
from tilewright.scheduler.strategies.search import Proposed, Search
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.ledger import Ledger
from tilewright.scheduler.tuning.runs.run_log import RunLog, new_run
from tilewright.scheduler.tuning.scoreboard import Scoreboard
from tilewright.scheduler.tuning.searching import new_search
from tilewright.scheduler.tuning.states import Stop
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.kernel import Kernel
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
    from tilewright.spaces.language import Program

ENQUEUED = "enqueued"
"""Origin of a schedule that somebody put first."""
CLOSED = "closed"
"""Reason of the end of a study that its owner closed."""


@dataclass(frozen=True)
class Trial:
    """One attempt of a study: a schedule, who proposed it, and what became of it.

    ``number`` counts the candidates of a run from 0, and ``origin`` names the step that proposed
    this one, such as ``random``. ``mean`` and ``spread`` are the search's prediction, see
    :class:`scheduler.strategies.search.Proposed`. ``measurement`` is None until it is told.
    """

    number: int
    schedule: Schedule
    origin: str = ""
    mean: float | None = None
    spread: float | None = None
    measurement: Measurement | None = None

    @property
    def latency(self) -> float | None:
        """Seconds of one call; None until it is told, and where the kernel failed."""
        return None if self.measurement is None else self.measurement.score

    @property
    def error(self) -> str:
        """The kind of its failure; empty if it did not fail."""
        kind = None if self.measurement is None else self.measurement.error_kind
        return "" if kind is None else str(kind)

    @property
    def decisions(self) -> dict[str, Any]:
        """The decisions of the schedule, by name."""
        return dict(self.schedule.values)


Callback = Callable[["Study", Trial], None]
"""Called after each trial. It may call :meth:`Study.stop`."""


class Study:
    """Asks a search for schedules of one workload, and keeps what it is told of them.

    Example::

        with Study("matmul m=512 n=512 k=512", "cpu", "tuning.db") as study:
            study.optimize(my_latency, trials=64)  # a function from a trial to seconds, or None
            print(study.best.latency, study.best.schedule)

    Or step by step: ``trial = study.ask()``, then ``study.tell(trial, seconds)``. ``search`` is the
    name of one, or a function from a space to a :class:`scheduler.strategies.search.Search`. What
    the database knows of the workload is told to it first. ``callbacks`` are called with the study
    and each trial that was told. ``space`` takes the place of all templates that ``numerics``
    allows. The tuner hands in the ``run`` that it records and the ``ledger`` that counts its time.
    A study is a context manager; :meth:`close` ends it. Raises :class:`InputError` for bad input.
    """

    def __init__(
        self,
        workload: Workload | Program | str,
        target: Target | str = Default.TARGET,
        database: Database | str | Path = Default.DATABASE,
        search: str | Callable[[Space], Search] = EVOLUTIONARY,
        seed: int = 0,
        model: CostModel | str | Path | None = None,
        numerics: Numerics | str = Numerics.STRICT,
        callbacks: Iterable[Callback] = (),
        space: Space | None = None,
        run: Run | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        promise = as_numerics(numerics)
        self.space = space or space_for(as_workload(workload), as_target(target), promise)
        self.board = Scoreboard()
        self.ledger = ledger or Ledger()
        self.stopped = False
        self.has_begun = False
        self.resumed: frozenset[Schedule] = frozenset()
        """The schedules that earlier runs measured, and that are not measured again."""
        self._stack = ExitStack()
        self._database = self._stack.enter_context(opened(database))
        self._callbacks = tuple(callbacks)
        self._make = search if callable(search) else None
        self._options = (str(search), seed, model)
        self._search: Search | None = None
        about: dict[str, Any] = {"search": search} if isinstance(search, str) else {}
        self.run = run or new_run(
            self.space,
            Baseline(self.space.workload),
            session="",
            command="",
            seed=seed,
            configuration=about | {"numerics": str(promise)},
        )
        self._log = RunLog(self._database, self.space, self.run)
        self._told: list[Measurement] = []  # before there was a search
        self._first: list[Proposed] = []  # before anything that the search asks for
        self._beside: set[Schedule] = set()  # under way, and not asked for by the search
        self._open: dict[Schedule, Trial] = {}
        self._number = 0

    def __repr__(self) -> str:
        best = self.board.best.score if self.board.best else None
        words = "no right kernel" if best is None else f"best {best * 1e6:.4g} us"
        how = f"{words}, {self.board.trials} trials"
        return brief(f"<Study {self.space.workload}\n  {self.space.target.summary}\n  {how}>")

    def _repr_html_(self) -> str:
        from tilewright.scheduler.report.figures import history  # draws only where it is shown
        from tilewright.scheduler.report.material import material_of

        words = f"<pre>{escape(repr(self))}</pre>"
        material = material_of(self._database, self.workload, self.target)
        return words + history(material).svg() if material.records else words

    def __enter__(self) -> Study:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close("failed" if kind else CLOSED)

    # -- what users call -------------------------------------------------------------------

    def ask(self) -> Trial | None:
        """Return the next schedule to measure; None if there is no further one."""
        return next(iter(self.ask_many(1)), None)

    def tell(
        self,
        trial: Trial | Schedule,
        latency: float | Measurement | None = None,
        error: ErrorKind | str = ErrorKind.REJECTED,
        samples: Sequence[float] = (),
    ) -> Trial:
        """Keep the ``latency`` of a trial in seconds, or its ``error`` if it has none.

        ``samples`` are the times that the latency was taken from. A whole measurement, such as an
        executor makes, takes the place of all three. Raises :class:`InputError` for a latency that
        is none, an unknown kind of error, or a schedule outside the space.
        """
        schedule = self._checked(trial.schedule if isinstance(trial, Trial) else trial)
        if isinstance(latency, Measurement):
            told = replace(latency, schedule=schedule)
        else:
            told = _measured(schedule, latency, error, samples)
        known = self._open.get(schedule) or Trial(self._number, schedule)
        self.tell_all([told])
        return replace(known, measurement=told)

    def enqueue(
        self, schedule: Schedule | Mapping[str, Any], template: str | None = None
    ) -> Schedule:
        """Let a schedule be measured before anything that the search asks for, and return it.

        It is a :class:`spaces.schedule.Schedule`, or its decisions by name. The first template is
        meant that has decisions of these names, unless ``template`` names one. Raises
        :class:`InputError` for what the space does not have, with the reason.
        """
        given = schedule if isinstance(schedule, Schedule) else self._of(schedule, template)
        checked = self._checked(given)
        self.put_first([Proposed(checked, ENQUEUED)])
        return checked

    def optimize(
        self,
        measure: Callable[[Trial], float | Measurement | None],
        trials: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Measure trials by ``measure``, which returns seconds, a whole measurement, or None for a
        kernel that fails.

        It ends after so many trials or seconds, at the end of the space, or when a callback stops
        it.
        """
        until = time.monotonic() + (math.inf if seconds is None else seconds)
        left = math.inf if trials is None else trials
        while left > 0 and time.monotonic() < until and not self.stopped:
            trial = self.ask()
            if trial is None:
                return
            self.tell(trial, measure(trial))
            left -= 1

    def stop(self) -> None:
        """Let the study end after this trial. What was measured is kept, and so is the best."""
        self.stopped = True

    def kernel(self, trial: Trial | Schedule) -> Kernel:
        """Return the kernel of a trial: its source, and how it is called."""
        return self.space.lower(trial.schedule if isinstance(trial, Trial) else trial)

    @property
    def workload(self) -> Workload:
        """The workload that is tuned."""
        return self.space.workload

    @property
    def target(self) -> Target:
        """The target that it is tuned for."""
        return self.space.target

    @property
    def trials(self) -> list[Trial]:
        """All attempts that the database has of this workload and target, the oldest first."""
        self.begin()
        records = self._database.records(self.workload, self.target)
        return [_trial(number, record) for number, record in enumerate(records)]

    @property
    def best(self) -> Trial | None:
        """The best attempt so far, of earlier runs too, whose schedule the space still has; None if
        no kernel was right."""
        self.begin()
        known = self._database.best_few(
            self.workload, self.target, MOST_ANSWERS, self.space.versions
        )
        return next((_trial(0, record) for record in known if record.schedule in self.space), None)

    def close(self, reason: str = CLOSED) -> None:
        """Record the end of the run and its reason, and close what was opened. Idempotent."""
        with self._stack:
            if self.has_begun and self.run.ended_at is None:
                self._log.end(str(Stop.CALLBACK) if self.stopped and reason == CLOSED else reason)
                self.run = replace(self.run, ended_at=time.time())

    # -- what the tuner calls --------------------------------------------------------------

    def begin(self) -> list[Record]:
        """Start a run in the database, and take over the results of earlier runs. Return their
        records, but for attempts that a machine lost; none if the run had begun."""
        if self.has_begun:
            return []
        with self.ledger.work("database"):
            self._log.begin()
            self.has_begun = True
            known = [
                record
                for record in self._database.records(self.workload, self.target)
                if not record.measurement.lost
            ]
        today = [
            record
            for record in known
            if record.template_version in self.space.versions and not record.doubted
        ]
        rows = self.space.placed([record.schedule for record in today])
        sound = [
            replace(record.measurement, schedule=self.space.ordered(record.schedule))
            for record, row in zip(today, rows, strict=True)
            if row is not None  # decisions and rules may have changed within a version
        ]
        self.board.resume(sound)
        self.resumed = frozenset(measurement.schedule for measurement in sound)
        best = self.board.best.schedule if self.board.best else None
        self._told += [measurement for measurement in sound if measurement.schedule != best]
        return known

    def put_first(self, proposed: Sequence[Proposed]) -> None:
        """Let these be asked for before anything that the search asks for."""
        self._first += proposed
        self._beside.update(each.schedule for each in proposed)

    def ask_many(self, count: int) -> list[Trial]:
        """Return at most ``count`` schedules to measure; none if there are no more."""
        search = self._opened_search()
        with self.ledger.work("search"):
            first, self._first = self._first[:count], self._first[count:]
            asked = search.ask(count - len(first)) if len(first) < count else []
            found = first + [p for p in asked if p.schedule not in self._beside]
            while asked and not found:  # all of them are under way
                asked = search.ask(count)
                found = [p for p in asked if p.schedule not in self._beside]
        return self.propose(found)

    def propose(self, proposed: Sequence[Proposed]) -> list[Trial]:
        """Give schedules that are going to be measured the next numbers of the run."""
        self._log.propose(proposed)
        trials = [
            Trial(self._number + place, p.schedule, p.origin, p.mean, p.spread)
            for place, p in enumerate(proposed)
        ]
        self._number += len(trials)
        self._open.update((trial.schedule, trial) for trial in trials)
        return trials

    def set_aside(self, schedule: Schedule) -> None:
        """Note that a schedule is measured, though the search did not ask for it."""
        self._beside.add(schedule)

    def tell_all(self, measurements: Sequence[Measurement]) -> None:
        """Record results, rank them, teach the search, and call the callbacks."""
        self.begin()
        self.record(measurements)
        for measurement in measurements:
            self.rank(measurement)
        self.teach([measurement for measurement in measurements if not measurement.lost])

    def record(self, measurements: Sequence[Measurement]) -> None:
        """Keep results in the database; on disk on return."""
        with self.ledger.work("database"):
            if measurements:
                self._log.record(measurements)
        self._beside.difference_update(measurement.schedule for measurement in measurements)

    def rank(self, measurement: Measurement) -> None:
        """Count and rank one result of the search."""
        self.board.add(measurement, self.ledger.elapsed)
        trial = self._open.pop(measurement.schedule, None)
        if self._callbacks and not measurement.lost:
            told = trial or Trial(self._number, measurement.schedule)
            for callback in self._callbacks:
                callback(self, replace(told, measurement=measurement))

    def teach(self, measurements: Sequence[Measurement]) -> None:
        """Tell the search outcomes."""
        if self._search is None:
            self._told += measurements
            return
        with self.ledger.work("search"):
            self._search.tell([(m.schedule, m.score) for m in measurements])

    def beat(self) -> None:
        """Update the run's heartbeat if nothing was recorded for a while."""
        with self.ledger.work("database"):
            self._log.beat()

    def doubt(self, records: Sequence[Record]) -> None:
        """Mark records of earlier runs that this one found false."""
        for record in records:
            self._database.doubt(record)

    @property
    def database(self) -> Database:
        """The database that keeps the trials."""
        return self._database

    # -- parts -----------------------------------------------------------------------------

    def _opened_search(self) -> Search:
        self.begin()
        if self._search is None:
            with self.ledger.work("search"):
                if self._make is not None:
                    self._search = self._make(self.space)
                else:
                    load_early()
                    self._search = new_search(self.space, self._database, *self._options)
            told, self._told = self._told, []
            self.teach(told)
        return self._search

    def _checked(self, schedule: object) -> Schedule:
        """Return a schedule of the space; :class:`InputError` for anything else."""
        if not isinstance(schedule, Schedule):
            raise InputError(f"{shown(schedule)} is no schedule; allowed: a Trial or a Schedule")
        if why := self.space.why_not(schedule):
            raise InputError(why)
        return self.space.ordered(schedule)

    def _of(self, decisions: Mapping[str, Any], template: str | None) -> Schedule:
        """Return the schedule of these decisions."""
        if not isinstance(decisions, Mapping):
            raise InputError(
                f"{shown(decisions)} is no schedule; allowed: a Schedule, or decisions by name"
            )
        names = list(self.space.templates) if template is None else [template]
        made = [Schedule(name, tuple(decisions.items())) for name in names]
        return next((each for each in made if each in self.space), made[0])


def _measured(
    schedule: Schedule, latency: float | None, error: ErrorKind | str, samples: Sequence[float]
) -> Measurement:
    """Return the measurement that somebody told; :class:`InputError` if it is none."""
    now, place = time.time(), Place(platform.node())
    if latency is None:
        return Measurement(
            schedule, Status.ERROR, error_kind=_kind(error), started_at=now, place=place
        )
    times = tuple(map(_seconds, samples)) or (_seconds(latency),)
    return Measurement(
        schedule, Status.OK, _seconds(latency), times, clock="wall", started_at=now, place=place
    )


def _seconds(value: object) -> float:
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = math.nan
    if isinstance(value, bool) or not 0.0 < found < math.inf:
        raise InputError(f"latency={shown(value)} is no time; allowed: seconds above 0, or None")
    return found


def _kind(error: ErrorKind | str) -> ErrorKind:
    try:
        return ErrorKind(error)
    except ValueError:
        allowed = ", ".join(ErrorKind)
        raise InputError(f"error={shown(error)} is unknown; allowed: {allowed}") from None


def _trial(number: int, record: Record) -> Trial:
    """Return a record as a trial; one without a proposal gets ``number``."""
    proposal, measurement = record.proposal, record.measurement
    if proposal is None:
        return Trial(number, record.schedule, measurement=measurement)
    return Trial(
        proposal.place,
        record.schedule,
        proposal.origin,
        proposal.mean,
        proposal.spread,
        measurement,
    )
