"""Tune one workload: choose what to measure next, and learn from the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Candidate, Job, Measurement
from tilewright.measure.records.ranking import FINAL, SEARCH
from tilewright.measure.records.run import CHECKED
from tilewright.scheduler.earlier_versions import starting_schedules
from tilewright.scheduler.strategies.search import Proposed
from tilewright.scheduler.tuning.estimates import Estimates
from tilewright.scheduler.tuning.halving import Halving
from tilewright.scheduler.tuning.pace import LEAST_FINALISTS, USUAL, Pace, Worth
from tilewright.scheduler.tuning.states import Leader, Stop
from tilewright.scheduler.tuning.study import Study
from tilewright.scheduler.tuning.unconfirmed import UnconfirmedRecords
from tilewright.scheduler.unmeasured import untuned
from tilewright.spaces.schedule import Schedule

LOST_IN_A_ROW = 16  # lost attempts after which the machine is taken for broken
EARLIER = "earlier"  # origin of what was fast for an earlier version of its template
UNTUNED = "untuned"  # origin of what is answered for a workload that nobody tuned

Report = Callable[[str, Measurement | None], None]
"""Told the phase and the latest measurement, None where candidates were asked for."""


class Task:
    """One workload on one target while it is tuned.

    A task asks its study for candidates, hands them to an executor, and tells it the results.
    :class:`scheduler.tuning.loop.Tuning` decides when and how many.

    The search is told the database's measurements of this space first; they are not repeated. The
    best of them is checked before it counts (:mod:`scheduler.tuning.unconfirmed`). Attempts in
    which the machine failed are recorded, and change nothing else. Every result is recorded before
    it is used. The search is made before the first candidates are asked for.
    """

    def __init__(
        self,
        study: Study,
        executor: Executor,
        pace: Pace,
        report: Report,
        model: CostModel | None = None,
        worth: Callable[[], Worth] = lambda: USUAL,
        rivals: Sequence[str] = (),
        rivals_last: bool = False,
    ) -> None:
        self.study, self.space, self.board = study, study.space, study.board
        self.stop: Stop | None = None
        self.earlier = 0  # records of earlier versions of templates
        self.submitted = 0  # candidates of the search, but for those that the machine lost
        self.levels: list[float | None] = []  # the best latency known when each batch was sent
        self._executor, self._model = executor, model
        self.halving = Halving(pace.final.next, pace.final.times)
        self.estimates = Estimates(pace, executor, self.board, worth)
        self._pace, self._ledger, self._report = pace, study.ledger, report
        self._rivals, self._rivals_last = tuple(rivals), rivals_last
        self._unconfirmed = UnconfirmedRecords([])
        self._starts: list[Schedule] = []  # of earlier versions
        self._checked: Schedule | None = None
        self._before: float | None = None  # the best latency that earlier runs found

    @property
    def id(self) -> str:
        """The identity of its job, and of its run in the database."""
        return self.study.run.key

    @property
    def has_begun(self) -> bool:
        """True once the database knows of the run."""
        return self.study.has_begun

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
        known = self.study.begin()
        versions, is_earlier = self.space.versions, self.space.is_earlier
        self.earlier = sum(is_earlier(record.template_version) for record in known)
        placed = zip(known, self.space.placed([r.schedule for r in known]), strict=True)
        starts = [r for r, row in placed if row is None or is_earlier(r.template_version)]
        self._starts = starting_schedules(self.space, starts)
        self._unconfirmed = UnconfirmedRecords([r for r in known if r.template_version in versions])
        self._before = self.latency
        self._report("search", None)

    def submit(self, count: int) -> bool:
        """Ask for ``count`` candidates and queue them; false if there are no more."""
        if not self.levels:
            self._begin_with_answers()
        self._check_best()
        trials = self.study.ask_many(count)
        if not trials:
            return False
        self.levels.append(self.latency)
        self.submitted += len(trials)
        self._send([trial.schedule for trial in trials], self.job())
        self._report("search", None)
        return True

    def take(self, measurements: Sequence[Measurement], seconds: float) -> None:
        """Record results that came after ``seconds`` without any, and learn from them."""
        final = any(measurement.round == FINAL for measurement in measurements)
        if final:
            measurements = self.halving.take(measurements)
        self.study.record(measurements)
        new = [m for m in measurements if not self._settles_a_claim(m)]
        for measurement in new:
            self._add(measurement, final)
        self.submitted -= sum(measurement.lost for measurement in new)
        measured = [measurement for measurement in measurements if not measurement.lost]
        if measured:
            self.estimates.note(seconds, measured, final)
            self.study.teach(measured)

    def beat(self) -> None:
        """Update the run's heartbeat if nothing was recorded for a while."""
        self.study.beat()

    def compare(self, schedules: Sequence[Schedule], decides: bool = True) -> None:
        """Measure the best few again, interleaved.

        The winner of single measurements is partly lucky (the winner's curse). So is the winner of
        a comparison among many, which need not ``decide``.
        """
        thorough = self.halving.begin(schedules, decides)
        self.study.propose([Proposed(schedule, "finalist") for schedule in schedules])
        beside = not self._rivals_last or decides or len(schedules) == 1
        rivals = self._rivals if beside else ()
        self._send(schedules, replace(self.job(True, thorough), rivals=rivals))
        self._report("final", None)

    def end(self, reason: str) -> None:
        """Record the end of the run and its reason; drop its candidates from the executor."""
        self._executor.drop(self.job())
        self.study.close(reason)

    # -- parts of steps --------------------------------------------------------------------

    def _begin_with_answers(self) -> None:
        """Let what is answered without tuning be measured first, and what was fast for an earlier
        version of its template."""
        with self._ledger.work("search"):
            answers = untuned(self.space, self.study.database, self._model)
        origins = dict.fromkeys(answers, UNTUNED)
        origins |= {s: EARLIER for s in self._starts if s not in origins}
        resumed = self.study.resumed
        new = [Proposed(s, origin) for s, origin in origins.items() if s not in resumed]
        self.study.put_first(new)

    def _check_best(self) -> None:
        """Measure the best of earlier runs once more, in full, unless that is under way.

        Only results of this run may cut other measurements short.
        """
        best = self.board.best
        if best is not None and best.schedule in self._unconfirmed and self._checked is None:
            self._checked = best.schedule
            self.study.set_aside(best.schedule)
            self.study.propose([Proposed(best.schedule, CHECKED)])
            workload, target = self.space.workload, self.space.target
            self._send([best.schedule], Job(self.id, workload, target))

    def _settles_a_claim(self, measurement: Measurement) -> bool:
        """Doubt earlier records of the measured schedule if they are false.

        Returns True if it was measured for no other reason.
        """
        with self._ledger.work("database"):
            false = self._unconfirmed.confirm(measurement)
            self.study.doubt(false)
        self.board.withdraw([record.measurement for record in false])
        if measurement.schedule != self._checked or measurement.round != SEARCH:
            return False
        self._checked = None
        self.board.check(measurement)
        self._report("search", None)
        return True

    def _send(self, schedules: Sequence[Schedule], job: Job) -> None:
        with self._ledger.work("lowering"):
            candidates = [Candidate(job, s, self.space.lower(s)) for s in schedules]
        self._executor.submit(job, candidates)

    def _add(self, measurement: Measurement, final: bool) -> None:
        if final:
            self.board.add_final(measurement)
        else:
            self.study.rank(measurement)
        self._report(FINAL if final else SEARCH, measurement)
