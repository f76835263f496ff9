"""Keep an executor busy with tasks, until time or trials are used up."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Measurement
from tilewright.measure.tables.retries import UnavailableError, waiting
from tilewright.scheduler.earlier_versions import note_on_earlier
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.interrupt import Interrupt
from tilewright.scheduler.tuning.ledger import Ledger
from tilewright.scheduler.tuning.runs.abandoned import Abandoned
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.task import Task
from tilewright.spaces.schedule import Schedule

SETTLE_SECONDS = 2.0  # time a run waits at its end for what an executor still runs
POLL = 0.5  # seconds after which a wait for results looks at the clock again
FAILED = "failed"  # why a run ended that an error ended

Order = Callable[[Sequence[Task]], Sequence[Task]]
"""Tasks that go on, those first that are to get the next batch."""


@dataclass(frozen=True)
class Remaining:
    """The budget that remains for further candidates of all tasks.

    ``seconds`` leaves out the time for ``pending`` candidates and for comparisons.
    """

    trials: int
    pending: int
    seconds: float

    def for_task(self, task: Task) -> float:
        """Return the seconds for this task that no other task needs."""
        return self.seconds + task.owed + task.estimates.reserve


class Tuning:
    """Tunes tasks side by side on one executor, and compares the best of each at the end.

    The tasks share ``budget``; ``ledger`` counts its time. Patience applies to each task. Others
    may use the executor at the same time. ``stop`` is the reason why the last task stopped.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        executor: Executor,
        ledger: Ledger,
        budget: Budget,
        order: Order = lambda tasks: tasks,
    ) -> None:
        self.stop: Stop | None = None
        self._tasks, self._executor, self._ledger = tasks, executor, ledger
        self._budget, self._order = budget, order
        self._heard: float | None = None  # when results came last, or the first were asked for
        self._interrupt = Interrupt()
        self._abandoned = Abandoned(executor, {task.space.target for task in tasks})

    def run(self) -> Stop:
        """Tune until there is a reason to stop (Ctrl-C is one), and return it."""
        failed = True
        until = self._budget.until(time.monotonic() - self._ledger.elapsed)
        try:
            with self._interrupt, waiting(until, hurry=self._interrupt.is_asked):
                self._tune()
                failed = False
        finally:
            with waiting(0.0 if failed else until), ExitStack() as ends:
                for task in self._tasks:  # each, whatever becomes of the others
                    ends.callback(self._note_end, task, failed)
                self._settle()
        assert self.stop is not None
        return self.stop

    def _note_end(self, task: Task, failed: bool) -> None:
        """End a task. If the database cannot record the end, its measurements are kept all the
        same."""
        try:
            task.end(FAILED if failed else str(task.stop))
        except UnavailableError as error:
            if not failed:  # of what failed, the first error is said
                warnings.warn(
                    f"cannot record the end of the run: {error}", RuntimeWarning, stacklevel=2
                )

    # -- phases ----------------------------------------------------------------------------

    def _tune(self) -> None:
        try:
            for place, task in enumerate(self._tasks):
                self._interrupt.check()
                if place and self._time_left <= 0:
                    break
                task.begin()
            if earlier := sum(task.earlier for task in self._tasks):
                warnings.warn(note_on_earlier(earlier), RuntimeWarning, stacklevel=2)
            self._explore()
            self._compare()
        except KeyboardInterrupt:
            self._end(self._tasks, Stop.INTERRUPTED)

    def _explore(self) -> None:
        """Keep the executor busy until there is a reason to stop and all results are in."""
        while self._time_left > 0:
            self._interrupt.check()
            self._make_room_to_compare()
            while self._time_left > 0 and self._submit_more():
                self._interrupt.check()
            if not self._pending():
                break
            self._collect(min(POLL, self._time_left))
            if any(task.machine_fails for task in self._tasks):
                self._end(self._tasks, Stop.MACHINE)
                return
            if self._has_no_workers:
                self._end(self._tasks, Stop.WORKERS)
                return
        self._end(self._open, Stop.SECONDS)

    def _compare(self) -> None:
        """Compare the best of each task; wait a little past the time for running candidates."""
        if self.stop in (Stop.MACHINE, Stop.WORKERS):
            return
        while self._pending() and self._finalists() and not self._has_no_workers:
            self._take_late()
        compared = {} if self._pending() else self._finalists()
        while compared:
            seconds = [task.estimates.comparing(len(s)) for task, s in compared.items()]
            decides = self._on_devices(seconds) > self._time_left + self._budget.overtime
            for task, schedules in compared.items():
                task.compare(schedules, decides)
            while self._pending() and self._time_left > -self._budget.overtime:
                if self._has_no_workers:
                    return
                self._take_late()
            compared = {} if self._pending() else self._go_on() or self._finalists()

    def _go_on(self) -> dict[Task, list[Schedule]]:
        """Return the schedules of each task that are compared once more."""
        going_on = {task: task.halving.go_on() for task in self._tasks}
        return {task: schedules for task, schedules in going_on.items() if schedules}

    def _finalists(self) -> dict[Task, list[Schedule]]:
        """Return the schedules to compare of undecided tasks, as many as fit each task's share of
        the time."""
        undecided = [task for task in self._tasks if task.comparable and task.undecided]
        tasks = {task: task.estimates.reserve for task in undecided}
        left, late, total = self._time_left, self._budget.overtime, self._reserve(list(tasks))
        found = {
            task: task.finalists(left * reserve / total, late * reserve / total)
            for task, reserve in tasks.items()
        }
        return {task: schedules for task, schedules in found.items() if schedules}

    def _take_late(self) -> None:
        """Take in the next results, even if the time is up."""
        self._interrupt.check()
        self._collect(min(POLL, self._time_left + self._budget.overtime))

    def _settle(self) -> None:
        """Drop queued candidates, and wait for running ones while there is time, but not for long.

        Results that are ready are taken in any case.
        """
        for task in self._tasks:
            self._executor.cancel(task.job())
        patience = min(self._ledger.elapsed + SETTLE_SECONDS, self._budget.seconds)
        waits = True
        while waits and self._pending():
            self._collect(patience - self._ledger.elapsed)
            waits = self._ledger.elapsed < patience

    # -- steps -----------------------------------------------------------------------------

    def _make_room_to_compare(self) -> None:
        """Drop queued candidates if they would leave no time to compare.

        Each task gets one result first, because any kernel is better than none.
        """
        needed = self._reserve([task for task in self._tasks if task.comparable])
        if needed < self._time_left or not all(task.board.trials for task in self._open):
            return
        if needed:
            for task in self._tasks:
                queued = task.pending
                self._executor.cancel(task.job())
                if task.pending < queued and task.stop is Stop.TRIALS:  # it had not made them all
                    self._end([task], Stop.SECONDS)
            self._end(self._open, Stop.SECONDS)

    def _submit_more(self) -> bool:
        """Let the first task that is due queue a batch; False if none is due."""
        left = self._left()
        for task in self._open:
            if reason := self._reason_to_stop(task, left):
                self._end([task], reason)
            if reason is Stop.CALLBACK:
                self._executor.cancel(task.job())
        largest = max((task.estimates.batch_size for task in self._open), default=0)
        if left.pending > self._executor.ahead * largest:
            return False
        for task in self._order(self._open):
            affordable = task.affordable(left.for_task(task))
            room = min(task.estimates.batch_size, left.trials, affordable)
            if task.pending <= task.ahead and room > 0:
                self._submit(task, room)
                return True
        return False

    def _submit(self, task: Task, count: int) -> None:
        if not task.submit(count):
            self._end([task], Stop.EXHAUSTED)
        if self._heard is None:
            self._heard = self._ledger.elapsed

    def _reason_to_stop(self, task: Task, left: Remaining) -> Stop | None:
        if task.study.stopped:
            return Stop.CALLBACK
        if left.trials <= 0:
            return Stop.TRIALS
        patience = self._budget.patience
        if patience is not None and task.board.since_gain >= patience:
            return Stop.PATIENCE
        if not left.pending and task.affordable(left.for_task(task)) <= 0:
            return Stop.SECONDS
        return None

    def _collect(self, timeout: float) -> None:
        """Wait at most ``timeout`` seconds for new results, and hand them to their tasks."""
        with self._ledger.on("waiting"):
            jobs = [task.job() for task in self._tasks]
            results = self._executor.results(max(0.0, timeout), *jobs)
        found: dict[str, list[Measurement]] = {}
        for result in results:
            found.setdefault(result.candidate.job.id, []).append(result.measurement)
        now = self._ledger.elapsed
        each = (now - (self._heard or now)) / max(1, len(results))
        for task in self._tasks:
            measurements = found.get(task.id, [])
            task.take(measurements, each * len(measurements))
        if not results:
            self._tasks[0].beat()  # a job lives as long as one of its runs
        if not all(result.measurement.lost for result in results):
            self._heard = now

    def _end(self, tasks: Sequence[Task], reason: Stop) -> None:
        for task in tasks:
            task.stop = self.stop = reason

    # -- what there is ---------------------------------------------------------------------

    @property
    def _has_no_workers(self) -> bool:
        """True if no worker has been there to measure for too long."""
        return self._abandoned.is_so(self._ledger.elapsed)

    @property
    def _open(self) -> list[Task]:
        """The tasks without a reason to stop."""
        return [task for task in self._tasks if task.stop is None]

    def _pending(self) -> int:
        return sum(task.pending for task in self._tasks)

    def _left(self) -> Remaining:
        """Compute the budget that remains for further candidates."""
        trials = self._budget.trials - sum(task.submitted for task in self._tasks)
        needed = sum(task.owed for task in self._tasks) + self._reserve(self._tasks)
        return Remaining(trials, self._pending(), self._time_left - needed)

    @property
    def _time_left(self) -> float:
        return self._budget.seconds - self._ledger.elapsed

    def _reserve(self, tasks: Sequence[Task]) -> float:
        """Return the seconds to compare the best of ``tasks``, spread over the devices."""
        return self._on_devices([task.estimates.reserve for task in tasks])

    def _on_devices(self, seconds: Sequence[float]) -> float:
        """Return the seconds until jobs of these lengths end when the devices share them."""
        return max([sum(seconds) / max(1, self._executor.devices), *seconds])
