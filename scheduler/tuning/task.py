"""Tune one workload: choose what to measure next, and learn from the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Candidate, Job, Measurement
from tilewright.measure.records.ranking import FINAL, SEARCH
from tilewright.measure.records.run import CHECKED, Run
from tilewright.scheduler.earlier_versions import starting_schedules
from tilewright.scheduler.strategies.search import Proposed, Search
from tilewright.scheduler.tuning.estimates import Estimates
from tilewright.scheduler.tuning.halving import Halving
from tilewright.scheduler.tuning.pace import LEAST_FINALISTS, USUAL, Pace, Worth
from tilewright.scheduler.tuning.progress import Leader, Ledger, Stop
from tilewright.scheduler.tuning.runs.run_log import RunLog
from tilewright.scheduler.tuning.scoreboard import Scoreboard
from tilewright.scheduler.tuning.unconfirmed import UnconfirmedRecords
from tilewright.scheduler.unmeasured import untuned
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

if TYPE_CHECKING:
    from tilewright.measure.database import Database

LOST_IN_A_ROW = 16  # lost attempts after which the machine is taken for broken
EARLIER = "earlier"  # origin of what was fast for an earlier version of its template
UNTUNED = "untuned"  # origin of what is answered for a workload that nobody tuned

Report = Callable[[str, Measurement | None], None]
"""Told the phase and the latest measurement, None where candidates were asked for."""


class Task:
    """One workload on one target while it is tuned.

    A task asks a search for candidates, hands them to an executor, and learns from the results.
    :class:`scheduler.tuning.loop.Tuning` decides when and how many.

    The search is told the database's measurements of this space first; they are not repeated. The
    best of them is checked before it counts (:mod:`scheduler.tuning.unconfirmed`). Attempts in
    which the machine failed are recorded, and change nothing else. Every result is recorded before
    it is used. ``make_search`` is called before the first candidates are asked for.
    """

    def __init__(
        self,
        space: Space,
        database: Database,
        executor: Executor,
        make_search: Callable[[], Search],
        pace: Pace,
        ledger: Ledger,
        run: Run,
        report: Report,
        model: CostModel | None = None,
        worth: Callable[[], Worth] = lambda: USUAL,
        rivals: Sequence[str] = (),
        rivals_last: bool = False,
    ) -> None:
        self.space = space
        self.board = Scoreboard()
        self.stop: Stop | None = None
        self.has_begun = False
        self.earlier = 0  # records of earlier versions of templates
        self.submitted = 0  # candidates of the search, but for those that the machine lost
        self.levels: list[float | None] = []  # the best latency known when each batch was sent
        self._database, self._executor = database, executor
        self._make_search, self._model = make_search, model
        self._search: Search | None = None
        self.halving = Halving(pace.final.next, pace.final.times)
        self.estimates = Estimates(pace, executor, self.board, worth)
        self._pace, self._ledger = pace, ledger
        self._run, self._report = run, report
        self._rivals, self._rivals_last = tuple(rivals), rivals_last
        self._log = RunLog(database, space, run)
        self._unconfirmed = UnconfirmedRecords([])
        self._known: list[Measurement] = []  # that the search is told first
        self._resumed: set[Schedule] = set()  # what earlier runs measured
        self._starts: list[Schedule] = []  # of those
        self._first: list[Proposed] = []  # before anything that the search asks for
        self._beside: set[Schedule] = set()  # under way, and not asked for by the search
        self._checked: Schedule | None = None
        self._before: float | None = None  # the best latency that earlier runs found

    @property
    def id(self) -> str:
        """The identity of its job, and of its run in the database."""
        return self._run.key

    @property
    def latency(self) -> float | None:
        """The latency of the fastest right kernel, in seconds."""
        return self.board.best.score if self.board.best is not None else None

    @property
    def first_latency(self) -> float | None:
        """The latency of the first right kernel that this run knew, in seconds."""
        if self._before is not None:
            return self._before
        return self.board.history[0][2] if self.board.history else None

    @property
    def units(self) -> int:
        """The number of batches sent. Trials of earlier runs count as full batches."""
        return len(self.levels) + self.board.resumed // self._pace.batch

    @property
    def machine_fails(self) -> bool:
        """True if several attempts in a row were lost."""
        return len(self.board.losses) >= LOST_IN_A_ROW

    @property
    def pending(self) -> int:
        """Candidates whose results have not come."""
        return self._executor.pending(self.job())

    def job(self, final: bool = False, thorough: bool = False) -> Job:
        """Return the job that its next batch is measured for."""
        space = self.space
        beat = self.board.latency_to_beat
        return Job(self.id, space.workload, space.target, beat, final, thorough)

    # -- time ------------------------------------------------------------------------------

    @property
    def ahead(self) -> int:
        """The number of candidates that may be pending when more are asked for.

        The first batch is awaited, because all that follow profit from it. Later one batch is built
        while another is timed.
        """
        return self._executor.ahead * self.estimates.batch_size if self.board.trials else 0

    @property
    def owed(self) -> float:
        """Seconds until the pending candidates are done."""
        return self.pending * self.estimates.candidate_seconds

    @property
    def comparable(self) -> bool:
        """True if there are schedules to compare at the end, or to check thoroughly."""
        return self.board.right >= (1 if self._pace.expected.others else LEAST_FINALISTS)

    @property
    def undecided(self) -> bool:
        """True if the best schedule was not compared yet, or its comparison is in doubt."""
        best = self.board.best
        return best is not None and self.halving.leaves_open(best.schedule)

    def finalists(self, left: float, late: float) -> list[Schedule]:
        """Return the schedules to compare in the time that remains; empty if they are fewer than
        two.

        ``left`` seconds remain, and a comparison may begin up to ``late`` seconds after them.
        """
        count = self.estimates.finalists(left, late)
        return self.board.leaders(count) if self.comparable else []

    def leaders(self, count: int) -> list[Leader]:
        """Return the best few schedules: those that were compared with the best one, or, if it
        never was, those that rank next."""
        best = self.board.best
        if best is None or best.score is None:
            return []
        shares = self.halving.shares(best.schedule)
        if not shares:
            ranks = self.board.ranks()
            shares = {schedule: ranks[best.schedule] / rank for schedule, rank in ranks.items()}
        ranked = sorted(shares, key=lambda schedule: -shares[schedule])
        return [Leader(s, best.score / shares[s], shares[s]) for s in ranked[:count]]

    def affordable(self, left: float) -> int:
        """Say how many more candidates can be built and run in ``left`` seconds, with a comparison
        after."""
        affordable = self.estimates.affordable(left)
        if not affordable and self.latency is None and not self.submitted:
            return self._pace.first(left)
        return max(0, affordable - self.pending)

    # -- steps -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a run in the database, and take over the results of earlier runs."""
        with self._ledger.work("database"):
            self._log.begin()
            self.has_begun = True
            known = [
                record
                for record in self._database.records(self.space.workload, self.space.target)
                if not record.measurement.lost
            ]
        versions, is_earlier = self.space.versions, self.space.is_earlier
        records = [record for record in known if record.template_version in versions]
        earlier = [record for record in known if is_earlier(record.template_version)]
        self.earlier, self._starts = len(earlier), starting_schedules(self.space, earlier)
        self._unconfirmed = UnconfirmedRecords(records)
        sound = [
            replace(record.measurement, schedule=self.space.ordered(record.schedule))
            for record in records
            if not record.doubted
        ]
        self.board.resume(sound)
        self._before = self.latency
        self._resumed = {measurement.schedule for measurement in sound}
        best = self.board.best.schedule if self.board.best else None
        self._known = [measurement for measurement in sound if measurement.schedule != best]
        self._report("search", None)

    def submit(self, count: int) -> bool:
        """Ask for ``count`` candidates and queue them; false if there are no more."""
        search = self._opened_search()
        self._check_best()
        with self._ledger.work("search"):
            first, self._first = self._first[:count], self._first[count:]
            asked = search.ask(count - len(first))
        proposed = first + [p for p in asked if p.schedule not in self._beside]
        if not asked and not proposed:
            return False
        self.levels.append(self.latency)
        self.submitted += len(proposed)
        self._send(proposed, self.job())
        self._report("search", None)
        return True

    def take(self, measurements: Sequence[Measurement], seconds: float) -> None:
        """Record results that came after ``seconds`` without any, and learn from them."""
        final = any(measurement.round == FINAL for measurement in measurements)
        if final:
            measurements = self.halving.take(measurements)
        with self._ledger.work("database"):
            if measurements:
                self._log.record(measurements)
        self._beside.difference_update(measurement.schedule for measurement in measurements)
        new = [m for m in measurements if not self._settles_a_claim(m)]
        for measurement in new:
            self._add(measurement, final)
        self.submitted -= sum(measurement.lost for measurement in new)
        measured = [measurement for measurement in measurements if not measurement.lost]
        if measured:
            self.estimates.note(seconds, measured, final)
            self._tell(measured)

    def beat(self) -> None:
        """Update the run's heartbeat if nothing was recorded for a while."""
        with self._ledger.work("database"):
            self._log.beat()

    def compare(self, schedules: Sequence[Schedule], decides: bool = True) -> None:
        """Measure the best few again, interleaved.

        The winner of single measurements is partly lucky (the winner's curse). So is the winner of
        a comparison among many, which need not ``decide``.
        """
        thorough = self.halving.begin(schedules, decides)
        finalists = [Proposed(schedule, "finalist") for schedule in schedules]
        beside = not self._rivals_last or decides or len(schedules) == 1
        rivals = self._rivals if beside else ()
        self._send(finalists, replace(self.job(True, thorough), rivals=rivals))
        self._report("final", None)

    def end(self, reason: str) -> None:
        """Record the end of the run and its reason; drop its candidates from the executor."""
        self._executor.drop(self.job())
        if self.has_begun:
            self._log.end(reason)

    # -- parts of steps --------------------------------------------------------------------

    def _opened_search(self) -> Search:
        if self._search is None:
            with self._ledger.work("search"):
                self._search = self._make_search()
                answers = untuned(self.space, self._database, self._model)
            origins = dict.fromkeys(answers, UNTUNED)
            origins |= {s: EARLIER for s in self._starts if s not in origins}
            new = {s: origin for s, origin in origins.items() if s not in self._resumed}
            self._first = [Proposed(schedule, origin) for schedule, origin in new.items()]
            self._beside.update(new)
            self._tell(self._known)
        return self._search

    def _tell(self, measurements: Sequence[Measurement]) -> None:
        if self._search is None:
            self._known += measurements
            return
        with self._ledger.work("search"):
            self._search.tell([(m.schedule, m.score) for m in measurements])

    def _check_best(self) -> None:
        """Measure the best of earlier runs once more, in full, unless that is under way.

        Only results of this run may cut other measurements short.
        """
        best = self.board.best
        if best is not None and best.schedule in self._unconfirmed and self._checked is None:
            self._checked = best.schedule
            self._beside.add(best.schedule)
            workload, target = self.space.workload, self.space.target
            self._send([Proposed(best.schedule, CHECKED)], Job(self.id, workload, target))

    def _settles_a_claim(self, measurement: Measurement) -> bool:
        """Doubt earlier records of the measured schedule if they are false.

        Returns True if it was measured for no other reason.
        """
        with self._ledger.work("database"):
            false = self._unconfirmed.confirm(measurement)
            for record in false:
                self._database.doubt(record)
        self.board.withdraw([record.measurement for record in false])
        if measurement.schedule != self._checked or measurement.round != SEARCH:
            return False
        self._checked = None
        self.board.check(measurement)
        self._report("search", None)
        return True

    def _send(self, proposed: Sequence[Proposed], job: Job) -> None:
        with self._ledger.work("lowering"):
            schedules = [p.schedule for p in proposed]
            candidates = [Candidate(job, s, self.space.lower(s)) for s in schedules]
        self._log.propose(proposed)
        self._executor.submit(job, candidates)

    def _add(self, measurement: Measurement, final: bool) -> None:
        if final:
            self.board.add_final(measurement)
        else:
            self.board.add(measurement, self._ledger.elapsed)
        self._report(FINAL if final else SEARCH, measurement)
