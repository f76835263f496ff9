"""Tuning: search proposes, an executor builds and runs, the database keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from costmodel.interfaces import CostModel
from measure.interfaces import Executor
from measure.measurement import Candidate, Job, Measurement, new_job_id
from measure.run import CHECKED, Run
from measure.telling import telling
from scheduler.claims import Claims
from scheduler.defaults import default_search, expected_latency, local_executor
from scheduler.interrupt import Interrupt
from scheduler.limits import check_memory
from scheduler.opening import as_model, opened
from scheduler.pace import COMPARISONS, LEAST_BATCH, LEAST_BATCHES, Pace, Rate, expected
from scheduler.progress import Ledger, Progress, Stop, TuningResult
from scheduler.run_log import RunLog, versions
from scheduler.scoreboard import Scoreboard
from scheduler.search import Proposed, Search
from scheduler.transfer import transfer
from scheduler.yardstick import Yardstick
from spaces.checks import positive, whole
from spaces.operators import as_workload
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.space import Space
from spaces.target import Target, as_target
from spaces.workload import Workload

if TYPE_CHECKING:
    from measure.database import Database

SETTLE_SECONDS = 2.0  # that a run waits at its end for what an executor still runs
POLL = 0.5  # seconds after which a wait for results looks at the clock again
FAILED = "failed"  # why a run ended that an error ended
LOST_IN_A_ROW = 16  # attempts, after which the machine is taken for broken

OnProgress = Callable[[Progress], None]


class Tuner:
    """Tunes one workload on one target.

    What the database knows of this space is told to the search first and never measured again,
    so a killed run goes on where it was; what it knows of other shapes is the search's prior. But
    what it says of the best is checked before that is told (:mod:`scheduler.claims`).
    Attempts in which the machine failed are recorded and otherwise as if they had not been.
    Every result is recorded before anything else is done with it. The first batch is awaited,
    since all that follow profit from it; from then on one is built while another is timed. A
    ``batch`` is as large as the executor likes it, if nobody says. An ``executor`` stays open for
    whoever made it; without one each run has its own on this machine. A ``model`` leads the
    search until enough is measured.
    """

    def __init__(
        self,
        workload: Workload,
        target: Target,
        database: Database,
        executor: Executor | None = None,
        search: Search | None = None,
        seed: int = 0,
        space: Space | None = None,
        batch: int | None = None,
        session: str = "",
        command: str = "",
        yardstick: Yardstick | None = None,
        model: CostModel | None = None,
    ) -> None:
        self.workload = workload
        self.target = target
        self.space = space or space_for(workload, target)
        telling(workload)  # or else refused before anything is measured
        self._database = database
        self._given_executor = executor
        self._given_search, self._given_model, self._seed = search, model, seed
        self._batch = batch
        self._session, self._command, self._yardstick = session, command, yardstick

    def run(
        self,
        trials: int = 128,
        seconds: float = 60.0,
        patience: int | None = None,
        on_progress: OnProgress | None = None,
        began: float | None = None,
    ) -> TuningResult:
        """Measure at most ``trials`` new schedules in at most ``seconds`` of wall time.

        The time counts from ``began`` (by ``time.monotonic``), by default from now, and the final
        comparison of the best is part of it. Stops early when ``patience`` trials brought nothing
        better, when the space is exhausted, when the machine fails time after time, or by Ctrl-C:
        then the result is the best so far.
        """
        _check(trials, seconds, patience)
        self._trials, self._seconds, self._patience = trials, seconds, patience
        self._on_progress = on_progress
        self._ledger, self._board = Ledger(began), Scoreboard()
        self._job_id = new_job_id()
        self._submitted = 0
        self._checked: Schedule | None = None
        self._stop: Stop | None = None
        self._executor = self._given_executor or local_executor(self.target)
        most = min(self._batch or self._executor.batch, max(LEAST_BATCH, trials // LEAST_BATCHES))
        final = COMPARISONS[self.target.kind]
        usual = expected(self.workload, self.target.kind, expected_latency(self.space))
        self._pace = Pace(seconds, usual, most, final)
        self._rate = Rate(0.0)
        self._log = RunLog(self._database, self.space, self._description())
        ended = FAILED
        try:
            with Interrupt() as self._interrupt:
                self._begin()
                self._resume()
                self._explore()
                self._compare()
            ended = str(self._stop or Stop.TRIALS)
        except KeyboardInterrupt:
            self._stop = Stop.INTERRUPTED
            ended = str(self._stop)
        finally:
            self._leave()
            self._log.end(ended)
        return self._result()

    def _description(self) -> Run:
        """This run, for the database."""
        yardstick = self._yardstick or Yardstick(self.workload)
        budget = {"trials": self._trials, "seconds": self._seconds, "patience": self._patience}
        now = time.time()
        return Run(
            key=self._job_id,
            workload=self.workload,
            target=self.target,
            session=self._session,
            command=self._command,
            seed=self._seed,
            configuration=budget,
            versions=versions(self.space),
            started_at=now,
            heartbeat=now,
            peak_gflops=yardstick.peak_gflops,
            library_seconds=yardstick.numpy_seconds,
        )

    # -- phases ----------------------------------------------------------------------------

    def _begin(self) -> None:
        with self._work("database"):
            self._log.begin()
        with self._work("search"):
            self._search = self._given_search or default_search(
                self.space, self._seed, transfer(self.space, self._database), self._given_model
            )

    def _resume(self) -> None:
        """Take over what earlier runs measured. What they say of the best is not told to the search
        before it was checked."""
        with self._work("database"):
            records = [
                record
                for record in self._database.records(self.workload, self.target)
                if record.template_version in self.space.versions and not record.measurement.lost
            ]
        self._claims = Claims(records)
        self._board.resume([record.measurement for record in records if not record.doubted])
        claimed = self._board.best
        best = claimed.schedule if claimed else None
        self._tell([r.measurement for r in records if not r.doubted and r.schedule != best])
        self._report("search", None)

    def _explore(self) -> None:
        """Keep the executor busy until a reason to stop, and its last results are in."""
        while self._time_left() > 0:
            self._interrupt.check()
            if self._time_left() <= self._reserve() and len(self._board.leaders(2)) == 2:
                # what has not started yet would leave no time to compare
                self._executor.cancel(self._job())
                self._stop = self._stop or Stop.SECONDS
            ahead = self._batch_size() if self._board.trials else 0
            while self._pending() <= ahead and self._submit_more():
                pass
            if not self._pending():
                return
            collected = self._collect()
            new = [m for m in collected if not self._settles_a_claim(m)]
            for measurement in new:
                self._add(measurement)
            measured = [measurement for measurement in collected if not measurement.lost]
            self._submitted -= sum(measurement.lost for measurement in new)
            if measured:
                ran = sum(measurement.run_seconds for measurement in measured)
                self._rate.note(self._ledger.elapsed, len(measured), ran)
            self._tell(measured)
            if len(self._board.losses) >= LOST_IN_A_ROW:
                self._stop = Stop.MACHINE
                return
        self._stop = self._stop or Stop.SECONDS

    def _compare(self) -> None:
        """Measure the best few again, interleaved: a single measurement's winner is partly
        lucky (the winner's curse). What still runs is waited for, a little past the time."""
        if self._stop is Stop.MACHINE:
            return
        while self._pending() and self._comparable():
            self._take()
        leaders = self._board.leaders(self._comparable())
        if not leaders or self._pending():
            return
        self._submit(
            [Proposed(schedule, "finalist") for schedule in leaders], self._job(final=True)
        )
        self._report("final", None)
        while self._pending() and self._ledger.elapsed < self._pace.end:
            self._take()

    def _comparable(self) -> int:
        """How many finalists there are and is time for; none if these are not two."""
        if len(self._board.leaders(2)) < 2:
            return 0
        return self._pace.comparable(self._ledger.elapsed, self._rate.each, self._best())

    def _take(self) -> None:
        """Take in what comes next, also when the time is up."""
        self._interrupt.check()
        for measurement in self._collect(min(POLL, self._pace.end - self._ledger.elapsed)):
            if not self._settles_a_claim(measurement):
                self._add(measurement)

    def _leave(self) -> None:
        """End the executor, or leave nothing of this run to one that others are going to use. What
        runs is waited for as long as there is time, but not for long."""
        if self._given_executor is None:
            self._executor.close()
            return
        self._executor.cancel(self._job())
        patience = min(self._ledger.elapsed + SETTLE_SECONDS, self._seconds)
        while self._pending() and self._ledger.elapsed < patience:
            for measurement in self._collect(max(0.0, patience - self._ledger.elapsed)):
                if not self._settles_a_claim(measurement):
                    self._add(measurement)
        self._executor.drop(self._job())

    # -- steps -----------------------------------------------------------------------------

    def _submit_more(self) -> bool:
        """Ask for a batch and queue it; false if there is none, or no time for one now."""
        self._stop = self._stop or self._reason_to_stop()
        room = min(self._batch_size(), self._trials - self._submitted, self._affordable())
        if self._stop or room <= 0:
            return False
        self._check_best()
        with self._work("search"):
            asked = self._search.ask(room)
        proposed = [p for p in asked if p.schedule != self._checked]
        if not asked:
            self._stop = Stop.EXHAUSTED
            return False
        if not self._submitted:
            self._rate = Rate(self._ledger.elapsed)
        self._submitted += len(proposed)
        self._submit(proposed)
        self._report("search", None)
        return True

    def _check_best(self) -> None:
        """Measure the best of earlier runs once more, to the end, if that is not under way: only
        what this run has seen itself cuts others short."""
        best = self._board.best
        if best is not None and best.schedule in self._claims and self._checked is None:
            self._checked = best.schedule
            self._submit([Proposed(best.schedule, CHECKED)], Job(*self._whose(), best=None))

    def _settles_a_claim(self, measurement: Measurement) -> bool:
        """Doubt what earlier records say of the measured schedule, if that is false. Whether it
        was measured for no other reason."""
        with self._work("database"):
            false = self._claims.settle(measurement)
            for record in false:
                self._database.doubt(record)
        self._board.withdraw([record.measurement for record in false])
        if measurement.schedule != self._checked or measurement.round == "final":
            return False
        self._checked = None
        self._board.check(measurement)
        self._report("search", None)
        return True

    def _submit(self, proposed: Sequence[Proposed], job: Job | None = None) -> None:
        job = job or self._job()
        with self._work("lowering"):
            schedules = [p.schedule for p in proposed]
            candidates = [Candidate(job, s, self.space.lower(s)) for s in schedules]
        self._log.propose(proposed)
        self._executor.submit(job, candidates)

    def _job(self, final: bool = False) -> Job:
        """This run's job as it stands, for its next batch."""
        return Job(*self._whose(), self._board.latency_to_beat, final)

    def _whose(self) -> tuple[str, Workload, Target]:
        return self._job_id, self.workload, self.target

    def _pending(self) -> int:
        return self._executor.pending(self._job())

    def _reason_to_stop(self) -> Stop | None:
        if self._submitted >= self._trials:
            return Stop.TRIALS
        if self._patience is not None and self._board.since_gain >= self._patience:
            return Stop.PATIENCE
        if not self._pending() and self._affordable() <= 0:
            return Stop.SECONDS
        return None

    def _add(self, measurement: Measurement) -> None:
        if measurement.round == "final":
            self._board.add_final(measurement)
        else:
            self._board.add(measurement, self._ledger.elapsed)
        self._report(measurement.round, measurement)

    def _collect(self, timeout: float | None = None) -> list[Measurement]:
        """New results, already recorded; waited for until the time is up, or for so long."""
        if timeout is None:
            timeout = max(0.0, min(POLL, self._time_left()))
        with self._ledger.on("waiting"):
            results = self._executor.results(timeout, self._job())
        measurements = [result.measurement for result in results]
        with self._work("database"):
            if measurements:
                self._log.record(measurements)
            else:
                self._log.beat()
        return measurements

    def _tell(self, measurements: Sequence[Measurement]) -> None:
        with self._work("search"):
            self._search.tell([(m.schedule, m.score) for m in measurements])

    # -- time ------------------------------------------------------------------------------

    def _work(self, account: str) -> AbstractContextManager[None]:
        """Book own work; also as idle if the executor has nothing to do meanwhile."""
        idle = () if self._pending() else ("idle",)
        return self._ledger.on(account, *idle)

    def _time_left(self) -> float:
        return self._seconds - self._ledger.elapsed

    def _affordable(self) -> int:
        elapsed, best = self._ledger.elapsed, self._best()
        affordable = self._pace.affordable(elapsed, self._rate.each, best)
        if not affordable and best is None and not self._submitted:
            return self._pace.first(elapsed)
        return max(0, affordable - self._pending())

    def _reserve(self) -> float:
        return self._pace.reserve(self._rate.each, self._best())

    def _batch_size(self) -> int:
        return self._pace.batch_size(self._rate.run)

    def _best(self) -> float | None:
        return self._board.best.score if self._board.best is not None else None

    # -- reporting -------------------------------------------------------------------------

    def _report(self, phase: str, latest: Measurement | None) -> None:
        if self._on_progress is not None:
            board = self._board
            self._on_progress(
                Progress(
                    phase=phase,
                    trials=board.trials,
                    trials_allowed=self._trials,
                    resumed=board.resumed,
                    pending=self._pending(),
                    lost=board.lost,
                    failures=dict(board.failures),
                    best=board.best,
                    latest=latest,
                    elapsed=self._ledger.elapsed,
                    seconds_allowed=self._seconds,
                )
            )

    def _result(self) -> TuningResult:
        board, ledger = self._board, self._ledger
        return TuningResult(
            workload=self.workload,
            target=self.target,
            best=board.best,
            stopped=self._stop or Stop.TRIALS,
            trials=board.trials,
            resumed=board.resumed,
            lost=board.lost,
            lacking=board.losses[-1].error_text if board.losses else "",
            failures=dict(board.failures),
            history=tuple(board.history),
            seconds=ledger.elapsed,
            waiting_seconds=ledger.spent("waiting"),
            search_seconds=ledger.spent("search"),
            lowering_seconds=ledger.spent("lowering"),
            database_seconds=ledger.spent("database"),
            idle_seconds=ledger.spent("idle"),
            before_seconds=ledger.before,
        )


def tune(
    workload: Workload | str,
    target: Target | str = "cpu",
    database: Database | str | Path = "tuning.db",
    trials: int = 128,
    seconds: float = 60.0,
    patience: int | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
    model: CostModel | str | Path | None = None,
) -> TuningResult:
    """Tune ``workload`` on this machine and keep every result in ``database``.

    All may be given as text: ``spaces.operators.workload``, ``spaces.target.detect_target``, a
    path or URL. ``executor`` takes the place of this machine; ``model``, or the model at that
    path, leads the search until enough is measured. See :meth:`Tuner.run` for the budgets.
    Raises :class:`InputError` for bad input.
    """
    workload, target = as_workload(workload), as_target(target)
    _check(trials, seconds, patience, seed)
    prior = None if model is None else as_model(model)
    with ExitStack() as stack:
        if executor is None:  # says what is missing here before a database is made
            check_memory(workload, target)
            executor = stack.enter_context(closing(local_executor(target)))
        known = stack.enter_context(opened(database))
        tuner = Tuner(workload, target, known, executor, seed=seed, model=prior)
        return tuner.run(trials, seconds, patience, on_progress)


def _check(trials: int, seconds: float, patience: int | None, seed: int = 0) -> None:
    whole("trials", trials, 1)
    positive("seconds", seconds)
    whole("seed", seed, 0)
    if patience is not None:
        whole("patience", patience, 1)
