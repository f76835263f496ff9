"""What is to be built and to be run, and which worker does what of it. Pure: no Ray, no clock.

Candidates come by jobs. They are cut into equal pieces, each of which is built by one worker and
then run together by another whose device is the job's target. Jobs take turns: a free worker goes
to the one that keeps the fewest busy. Little is built ahead of the run workers, however much waits.

A piece is in one place at a time: it waits, or it is the task of one worker. An answer counts
if its task is still out, so one that comes late, or twice, is ignored.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from measure.cluster.wire import Stored
from measure.executor import RUN_TOGETHER
from measure.interfaces import Built
from measure.records.measurement import Candidate, ErrorKind, Job, Measurement, Result, Status
from measure.retrying import Attempt, settle
from measure.timing import call_limit
from spaces.target import Target

PIECES_AHEAD = 2  # pieces built or being built for each run worker
LOSSES_ALONE = 4  # a candidate alone with so many lost workers is to blame
TASK_SECONDS = 600.0  # a worker that does not answer for so long is given up
CALLS = 10  # longest calls per candidate that a task may take besides


@dataclass(frozen=True)
class Worker:
    """A worker that is ready: ``role`` is build or run, ``serves`` says for which targets."""

    id: str
    role: str
    serves: Callable[[Target], bool]


@dataclass(eq=False)
class Task:
    """A piece that a worker has. Nobody waits for the answer if it is not ``wanted``."""

    number: int
    worker: Worker
    attempt: Attempt
    overdue_at: float
    wanted: bool = True

    @property
    def job(self) -> Job:
        """The job that it is for."""
        return self.attempt.job

    @property
    def builds(self) -> bool:
        """Whether it is to be built, not run."""
        return self.worker.role == "build"


@dataclass(eq=False)
class _Queue:
    """What waits of one job: pieces to build, pieces to run."""

    to_build: deque[Attempt] = field(default_factory=deque)
    to_run: deque[Attempt] = field(default_factory=deque)
    busy: int = 0  # workers
    served: int = 0  # when last, in turns

    @property
    def target(self) -> Target | None:
        """Of all of the job; None if nothing waits to be built."""
        return self.to_build[0].job.target if self.to_build else None

    def __len__(self) -> int:
        return sum(len(piece.built) for piece in (*self.to_build, *self.to_run))


class Backlog:
    """The work of all jobs, and the workers. Times are Unix times."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._workers: dict[str, Worker] = {}
        self._resting: dict[str, float] = {}  # until when
        self._tasks: dict[int, Task] = {}
        self._uses: Counter[int] = Counter()  # of the binaries of each build
        self._useless: list[int] = []
        self._number = 0

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
        queue = self._queues.pop(job.id, _Queue())
        for piece in queue.to_run:
            self._retire(piece.built)
        building = [t for t in self._of(job) if t.builds and t.wanted]
        for task in building:
            task.wanted = False
        if list(self._of(job)):
            self._queues[job.id] = _Queue(busy=queue.busy, served=queue.served)
        return len(queue) + sum(len(task.attempt.built) for task in building)

    def drop(self, job: Job) -> None:
        """Forget all candidates of a job."""
        self.cancel(job)
        for task in self._of(job):
            task.wanted = False

    # -- workers ---------------------------------------------------------------------------

    def join(self, worker: Worker) -> None:
        """A worker is ready."""
        self._workers[worker.id] = worker

    def leave(self, worker: str, why: str, now: float) -> list[Result]:
        """A worker is gone, and what it was doing is lost. What is final of that."""
        self._workers.pop(worker, None)
        self._resting.pop(worker, None)
        out = [task for task in self._tasks.values() if task.worker.id == worker]
        return [result for task in out for result in self.lost(task.number, why, now)]

    def rest(self, worker: str, until: float) -> None:
        """Give a worker nothing to do for a while."""
        self._resting[worker] = until

    def rests(self, worker: str, now: float) -> bool:
        """Whether a worker gets nothing to do now."""
        return self._resting.get(worker, now) > now

    def overdue(self, now: float) -> list[str]:
        """Workers that should have answered long ago."""
        return [task.worker.id for task in self._tasks.values() if task.overdue_at <= now]

    def serving(self, target: Target, role: str = "run") -> list[Worker]:
        """The workers that do this for ``target``."""
        return [w for w in self._workers.values() if w.role == role and w.serves(target)]

    # -- answers ---------------------------------------------------------------------------

    def task(self, number: int) -> Task | None:
        """The task of that number, if its answer is still waited for."""
        return self._tasks.get(number)

    def built(self, number: int, outcomes: Sequence[Stored | Measurement]) -> list[Result]:
        """A piece is built: the failures, which are final. What has a binary waits to be run."""
        task = self._end(number)
        if task is None:
            return []
        stored = [outcome for outcome in outcomes if isinstance(outcome, Stored)]
        if not stored or not task.wanted:
            return self._settled(task, _failures(task, outcomes), [])
        self._uses[number] = len(stored)
        self._queue(task.job).to_run.append(Attempt(task.job, stored))
        return _failures(task, outcomes)

    def ran(self, number: int, measurements: Sequence[Measurement]) -> list[Result]:
        """A piece was run: what is final of it. The rest is tried again."""
        task = self._end(number)
        if task is None:
            return []
        results, again = settle(task.attempt, measurements)
        return self._settled(task, results, again)

    def lost(self, number: int, why: str, now: float) -> list[Result]:
        """A worker died with a task. It is tried again, unless it has killed too many workers."""
        task = self._end(number)
        if task is None:
            return []
        measurements = _lost(task, ErrorKind.WORKER_LOST, why, now)
        results, again = settle(task.attempt, measurements, LOSSES_ALONE)
        killers = [
            replace(r, measurement=replace(r.measurement, error_kind=ErrorKind.WORKER_LOST))
            for r in results
        ]
        return self._settled(task, killers, again)

    def refused(self, number: int, why: str, now: float) -> list[Result]:
        """A worker could not begin with a task."""
        task = self._end(number)
        if task is None:
            return []
        results, again = settle(task.attempt, _lost(task, ErrorKind.DEVICE, why, now))
        return self._settled(task, results, again)

    def missing(self, number: int, why: str, now: float) -> list[Result]:
        """The binaries of a task are nowhere any more: it is built again."""
        task = self._end(number)
        if task is None:
            return []
        results, again = settle(task.attempt, _lost(task, ErrorKind.DEVICE, why, now))
        unbuilt = [replace(a, built=[Built(b.candidate) for b in a.built]) for a in again]
        return self._settled(task, results, unbuilt)

    def put_back(self, number: int) -> None:
        """Take a task that was run from its worker, for another one to run it."""
        task = self._end(number)
        if task is not None:
            self._settled(task, [], [replace(task.attempt, moved=True)])

    # -- what to do ------------------------------------------------------------------------

    def assign(self, now: float) -> list[Task]:
        """The next tasks for workers that have none."""
        busy = {task.worker.id for task in self._tasks.values()}
        idle = [w for w in self._workers.values() if w.id not in busy]
        rested = [w for w in idle if not self.rests(w.id, now)]
        tasks = []
        for worker in rested:
            if worker.role == "run" and (attempt := self._to_run(worker)):
                tasks.append(self._begin(worker, attempt, now))
        ahead = self._ahead()
        for worker in rested:
            if worker.role == "build" and (attempt := self._to_build(worker, ahead)):
                ahead[attempt.job.target.fingerprint] += len(attempt.built)
                tasks.append(self._begin(worker, attempt, now))
        return tasks

    def useless(self) -> list[int]:
        """Builds whose binaries nobody needs any more, each told once."""
        found, self._useless = self._useless, []
        return found

    def waiting(self, job_id: str) -> int:
        """How many candidates of a job no worker has."""
        queue = self._queues.get(job_id)
        return len(queue) if queue is not None else 0

    def tasks(self) -> list[Task]:
        """What the workers have."""
        return list(self._tasks.values())

    # -- parts -----------------------------------------------------------------------------

    def _to_run(self, worker: Worker) -> Attempt | None:
        able = [q for q in self._queues.values() if q.to_run and worker.serves(_target(q))]
        if not able:
            return None
        return min(able, key=_turn).to_run.popleft()

    def _to_build(self, worker: Worker, ahead: Mapping[str, int]) -> Attempt | None:
        able = []
        for queue in self._queues.values():
            target = queue.target
            if target is not None and worker.serves(target):
                most = PIECES_AHEAD * RUN_TOGETHER * max(1, len(self.serving(target)))
                if ahead.get(target.fingerprint, 0) < most:
                    able.append(queue)
        if not able:
            return None
        return min(able, key=_turn).to_build.popleft()

    def _ahead(self) -> Counter[str]:
        """How many candidates are built, or being built, but not run, by their target."""
        ahead: Counter[str] = Counter()
        waiting = [piece for queue in self._queues.values() for piece in queue.to_run]
        building = [task.attempt for task in self._tasks.values() if task.builds]
        for piece in (*waiting, *building):
            ahead[piece.job.target.fingerprint] += len(piece.built)
        return ahead

    def _begin(self, worker: Worker, attempt: Attempt, now: float) -> Task:
        self._number += 1
        job = attempt.job
        longest = len(attempt.built) * CALLS * call_limit(job.workload.flops, job.best)
        task = Task(self._number, worker, attempt, now + TASK_SECONDS + longest)
        self._tasks[task.number] = task
        queue = self._queue(job)
        queue.busy, queue.served = queue.busy + 1, self._number
        return task

    def _end(self, number: int) -> Task | None:
        task = self._tasks.pop(number, None)
        if task is not None:
            queue = self._queue(task.job)
            queue.busy -= 1
            if not queue.busy and not len(queue):
                del self._queues[task.job.id]
        return task

    def _settled(self, task: Task, results: list[Result], again: Sequence[Attempt]) -> list[Result]:
        """Queue what is tried again, let go of what is final; its results if they are wanted."""
        if not task.wanted:
            results, again = [], []
        if task.builds:
            self._useless.append(task.number)
        kept = {id(b) for attempt in again for b in attempt.built}
        self._retire([b for b in task.attempt.built if id(b) not in kept])
        for attempt in again:
            queue = self._queue(task.job)
            built = isinstance(attempt.built[0], Stored)
            (queue.to_run if built else queue.to_build).append(attempt)
        return results

    def _retire(self, built: Sequence[Built]) -> None:
        """Let go of binaries."""
        for number, count in Counter(b.build for b in built if isinstance(b, Stored)).items():
            self._uses[number] -= count
            if not self._uses[number]:
                del self._uses[number]
                self._useless.append(number)

    def _queue(self, job: Job) -> _Queue:
        return self._queues.setdefault(job.id, _Queue())

    def _of(self, job: Job) -> Iterator[Task]:
        return (task for task in self._tasks.values() if task.job.id == job.id)


def _target(queue: _Queue) -> Target:
    return queue.to_run[0].job.target


def _turn(queue: _Queue) -> tuple[int, int]:
    return queue.busy, queue.served


def _failures(task: Task, outcomes: Sequence[Stored | Measurement]) -> list[Result]:
    pairs = zip(task.attempt.built, outcomes, strict=True)
    return [Result(b.candidate, m) for b, m in pairs if isinstance(m, Measurement)]


def _lost(task: Task, kind: ErrorKind, why: str, now: float) -> list[Measurement]:
    """Measurements of a task that the machine failed in."""
    return [
        Measurement(
            schedule=b.candidate.schedule,
            status=Status.LOST,
            round=task.job.round,
            error_kind=kind,
            error_text=why,
            started_at=now,
        )
        for b in task.attempt.built
    ]
