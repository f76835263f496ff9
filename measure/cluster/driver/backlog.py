"""The queue of candidates to build and to run, and their assignment to workers. Pure: no Ray, no
clock.

Candidates come by jobs. They are cut into equal pieces, each of which is built by one worker and
then run together by another whose device is the job's target. Jobs take turns: a free worker goes
to the one that keeps the fewest busy. Little is built ahead of the run workers, however much waits.

A piece is in one place at a time: it waits, or it is the task of one worker. An answer counts
if its task is still out, so one that comes late, or twice, is ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilewright.measure.cluster.driver.binaries import Binaries
from tilewright.measure.cluster.driver.ready_workers import ReadyWorkers, Worker
from tilewright.measure.cluster.driver.tasks import Assignment, Queue, failures, losses
from tilewright.measure.cluster.wire import Stored
from tilewright.measure.executor import RUN_TOGETHER
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job, Measurement, Result
from tilewright.measure.retrying import Attempt, resolve
from tilewright.measure.timing import call_limit
from tilewright.spaces.target import Target

PIECES_AHEAD = 2
"""Pieces that are built, or being built, for each run worker."""
LOSSES_ALONE = 4
"""A candidate that was alone with so many workers when they were lost is to blame."""
TASK_SECONDS = 600.0
"""A worker that does not answer for so long, and the longest calls of its task, is given up."""
CALLS_PER_CANDIDATE = 10
"""Calls by which a task's longest time is reckoned."""


class Backlog:
    """The work of all jobs, and the workers. Times are Unix times."""

    def __init__(self) -> None:
        self._queues: dict[str, Queue] = {}
        self._tasks: dict[int, Assignment] = {}
        self._tasks_begun = 0
        self._ready, self._binaries = ReadyWorkers(), Binaries()

    # -- jobs ------------------------------------------------------------------------------

    def submit(self, job: Job, candidates: Sequence[Candidate]) -> None:
        """Queue candidates in equal pieces: one for each run worker, or more if these were of more
        than are run together. Those of a final comparison stay together."""
        built = [Built(candidate) for candidate in candidates]
        together = -(-len(built) // RUN_TOGETHER)
        count = 1 if job.final else max(1, together, len(self.serving(job.target)))
        size = max(1, -(-len(built) // count))
        pieces = (built[i : i + size] for i in range(0, len(built), size))
        self._queue(job).to_build.extend(Attempt(job, piece) for piece in pieces)

    def cancel(self, job: Job) -> int:
        """Forget the candidates of a job that do not run yet; how many there were."""
        queue = self._queues.pop(job.id, Queue())
        for piece in queue.to_run:
            self._binaries.let_go(piece.built)
        building = [t for t in self._of(job) if t.builds and t.wanted]
        for task in building:
            task.wanted = False
        if list(self._of(job)):
            self._queues[job.id] = Queue(
                busy_workers=queue.busy_workers, last_served=queue.last_served
            )
        return len(queue) + sum(len(task.attempt.built) for task in building)

    def drop(self, job: Job) -> None:
        """Forget all candidates of a job."""
        self.cancel(job)
        for task in self._of(job):
            task.wanted = False

    # -- workers ---------------------------------------------------------------------------

    def join(self, worker: Worker) -> None:
        """A worker is ready."""
        self._ready.join(worker)

    def leave(self, worker: str, why: str, now: float) -> list[Result]:
        """Remove a lost worker and its task; returns the results that become final by that."""
        self._ready.leave(worker, why)
        out = [task for task in self._tasks.values() if task.worker.id == worker]
        lost = f"its worker was lost: {why}"
        return [result for task in out for result in self.lost(task.number, lost, now)]

    def rest(self, worker: str, until: float) -> None:
        """Give a worker nothing to do for a while."""
        self._ready.rest(worker, until)

    def rests(self, worker: str, now: float) -> bool:
        """Tell whether a worker is to get no work for now."""
        return self._ready.rests(worker, now)

    def overdue(self, now: float) -> list[str]:
        """Return the workers that should have answered long ago."""
        return [task.worker.id for task in self._tasks.values() if task.overdue_at <= now]

    def serving(self, target: Target, role: str = "run") -> list[Worker]:
        """Return the workers that do this for ``target``."""
        return self._ready.serving(target, role)

    def ended(self, target: Target, role: str) -> Counter[str]:
        """Count the lost workers that had this role for ``target``, by reason."""
        return self._ready.ended(target, role)

    # -- answers ---------------------------------------------------------------------------

    def task(self, number: int) -> Assignment | None:
        """Return the task of that number, if its answer is still waited for."""
        return self._tasks.get(number)

    def built(self, number: int, outcomes: Sequence[Stored | Measurement]) -> list[Result]:
        """A piece is built: the failures, which are final. What has a binary waits to be run."""
        task = self._end(number)
        if task is None:
            return []
        stored = [outcome for outcome in outcomes if isinstance(outcome, Stored)]
        if not stored or not task.wanted:
            return self._settled(task, failures(task, outcomes), [])
        self._binaries.keep(number, len(stored))
        self._queue(task.job).to_run.append(Attempt(task.job, stored))
        return failures(task, outcomes)

    def ran(self, number: int, measurements: Sequence[Measurement]) -> list[Result]:
        """A piece was run: what is final of it. The rest is tried again."""
        task = self._end(number)
        if task is None:
            return []
        results, again = resolve(task.attempt, measurements)
        return self._settled(task, results, again)

    def lost(self, number: int, why: str, now: float) -> list[Result]:
        """Note that a worker died with a task. It is tried again, unless it has killed too many
        workers."""
        task = self._end(number)
        if task is None:
            return []
        measurements = losses(task, ErrorKind.WORKER_LOST, why, now)
        results, again = resolve(task.attempt, measurements, LOSSES_ALONE)
        killers = [
            replace(r, measurement=replace(r.measurement, error_kind=ErrorKind.WORKER_LOST))
            for r in results
        ]
        return self._settled(task, killers, again)

    def refused(self, number: int, why: str, now: float) -> list[Result]:
        """Note that a worker could not begin with a task."""
        task = self._end(number)
        if task is None:
            return []
        results, again = resolve(task.attempt, losses(task, ErrorKind.DEVICE, why, now))
        return self._settled(task, results, again)

    def missing(self, number: int, why: str, now: float) -> list[Result]:
        """The binaries of a task are nowhere any more: it is built again."""
        task = self._end(number)
        if task is None:
            return []
        results, again = resolve(task.attempt, losses(task, ErrorKind.DEVICE, why, now))
        unbuilt = [replace(a, built=[Built(b.candidate) for b in a.built]) for a in again]
        return self._settled(task, results, unbuilt)

    def put_back(self, number: int) -> None:
        """Take a task that was run from its worker, for another one to run it."""
        task = self._end(number)
        if task is not None:
            self._settled(task, [], [replace(task.attempt, moved=True)])

    # -- what to do ------------------------------------------------------------------------

    def assign(self, now: float) -> list[Assignment]:
        """Return the next tasks for workers that have none."""
        busy = {task.worker.id for task in self._tasks.values()}
        tasks = []
        for worker in self._ready.free("run", busy, now):
            if attempt := self._to_run(worker):
                tasks.append(self._begin(worker, attempt, now))
        ahead = self._ahead()
        for worker in self._ready.free("build", busy, now):
            if attempt := self._to_build(worker, ahead):
                ahead[attempt.job.target.fingerprint] += len(attempt.built)
                tasks.append(self._begin(worker, attempt, now))
        return tasks

    def useless(self) -> list[int]:
        """Builds whose binaries nobody needs any more, each told once."""
        return self._binaries.useless()

    def waiting(self, job_id: str) -> int:
        """Count the candidates of a job that no worker has."""
        queue = self._queues.get(job_id)
        return len(queue) if queue is not None else 0

    def tasks(self) -> list[Assignment]:
        """List the tasks that are assigned to workers."""
        return list(self._tasks.values())

    # -- parts -----------------------------------------------------------------------------

    def _to_run(self, worker: Worker) -> Attempt | None:
        able = [q for q in self._queues.values() if q.to_run and worker.serves(q.target)]
        return min(able, key=lambda queue: queue.turn).to_run.popleft() if able else None

    def _to_build(self, worker: Worker, ahead: Mapping[str, int]) -> Attempt | None:
        """Return the next piece for a worker that builds, unless enough of it is built
        ``ahead``."""

        def wanted(target: Target) -> bool:
            most = PIECES_AHEAD * RUN_TOGETHER * max(1, len(self.serving(target)))
            return worker.serves(target) and ahead.get(target.fingerprint, 0) < most

        able = [q for q in self._queues.values() if q.to_build and wanted(q.target)]
        return min(able, key=lambda queue: queue.turn).to_build.popleft() if able else None

    def _ahead(self) -> Counter[str]:
        """Say how many candidates are built, or being built, but not run, by their target."""
        ahead: Counter[str] = Counter()
        waiting = [piece for queue in self._queues.values() for piece in queue.to_run]
        building = [task.attempt for task in self._tasks.values() if task.builds]
        for piece in (*waiting, *building):
            ahead[piece.job.target.fingerprint] += len(piece.built)
        return ahead

    def _begin(self, worker: Worker, attempt: Attempt, now: float) -> Assignment:
        self._tasks_begun += 1
        job = attempt.job
        longest = len(attempt.built) * CALLS_PER_CANDIDATE * call_limit(job.workload.work, job.best)
        task = Assignment(self._tasks_begun, worker, attempt, now + TASK_SECONDS + longest)
        self._tasks[task.number] = task
        queue = self._queue(job)
        queue.busy_workers, queue.last_served = queue.busy_workers + 1, task.number
        return task

    def _end(self, number: int) -> Assignment | None:
        task = self._tasks.pop(number, None)
        if task is not None:
            queue = self._queue(task.job)
            queue.busy_workers -= 1
            if not queue.busy_workers and not len(queue):
                del self._queues[task.job.id]
        return task

    def _settled(
        self, task: Assignment, results: list[Result], again: Sequence[Attempt]
    ) -> list[Result]:
        """Queue the attempts to make again, release binaries of final results, and return these if
        they are wanted.
        """
        if not task.wanted:
            results, again = [], []
        if task.builds:
            self._binaries.discard(task.number)
        kept = {id(b) for attempt in again for b in attempt.built}
        self._binaries.let_go(b for b in task.attempt.built if id(b) not in kept)
        for attempt in again:
            queue = self._queue(task.job)
            built = isinstance(attempt.built[0], Stored)
            (queue.to_run if built else queue.to_build).append(attempt)
        return results

    def _queue(self, job: Job) -> Queue:
        return self._queues.setdefault(job.id, Queue())

    def _of(self, job: Job) -> Iterator[Assignment]:
        return (task for task in self._tasks.values() if task.job.id == job.id)
