"""The executor of one machine: builds the next candidates while it runs the last."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.measure import retrying
from tilewright.measure.cpu.cores import usable_cpus
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.interfaces import Builder, Built, Runner
from tilewright.measure.outcomes import Outcomes
from tilewright.measure.records.measurement import Candidate, Job, Result
from tilewright.measure.registry import builder_for, runner_for
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

RUN_TOGETHER = 16  # candidates that are timed in turns
LAST_WAIT = 0.5  # seconds for a thread that computes a reference, which nothing interrupts


@dataclass(eq=False)
class _Chunk:
    """Candidates of one job that are built, and then run, together."""

    job: Job
    candidates: Sequence[Candidate]
    built: Sequence[Built] = ()
    cancelled: bool = False


def _parts(job: Job, built: Sequence[Built]) -> list[_Chunk]:
    """Divide a job into parts that run together: all of a final comparison."""
    size = max(1, len(built)) if job.final else RUN_TOGETHER
    pieces = [built[i : i + size] for i in range(0, len(built), size)]
    return [_Chunk(job, [b.candidate for b in piece], piece) for piece in pieces]


class LocalExecutor:
    """Builds and runs candidates of ``target`` on this machine.

    One thread builds chunk after chunk, another runs what is built. As many compilers run beside
    the kernels as these leave cores free; at least one, since a kernel of one thread is timed by
    its CPU time, which another process on its core disturbs little. Kernels that are timed by
    the wall clock on all cores would be slowed: then building and running take turns.

    ``builder`` and ``runner`` default to those of the target's kind, for the first device of that
    kind; they are closed with the executor. An exception in either (a fault of the program or of
    the set-up, never of a candidate) ends the executor and is raised by :meth:`results`.
    Thread-safe.
    """

    devices = 1
    ahead = 1

    def __init__(
        self,
        target: Target,
        jobs: int | None = None,
        builder: Builder | None = None,
        runner: Runner | None = None,
    ) -> None:
        cores = usable_cpus()
        threads = getattr(target, "threads", 1)
        self._target = target
        self._takes_turns = 1 < threads >= cores
        jobs = jobs or (cores if self._takes_turns else max(1, cores - threads))
        self._builder = builder or builder_for(target, jobs)
        self.batch = self._builder.batch
        try:
            self._runner = runner or runner_for(target)
        except BaseException:
            self._builder.close()
            raise
        self._submitted: queue.Queue[_Chunk | None] = queue.Queue()
        self._built: queue.Queue[_Chunk | None] = queue.Queue()
        self._outcomes = Outcomes()
        self._waiting: list[_Chunk] = []  # all that do not run yet; guarded by what guards outcomes
        self._threads = [
            threading.Thread(target=loop, name=name, daemon=True)
            for name, loop in (("build", self._build_all), ("run", self._run_all))
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job, candidates: Sequence[Candidate]) -> None:
        """Queue candidates of ``job``; those of a final comparison run together. An
        :class:`InputError` if no kernel of its workload can be verified."""
        if job.target != self._target:
            raise InputError(
                f"a job for {job.target.summary} cannot run here; allowed: {self._target.summary}"
            )
        if any(candidate.job.id != job.id for candidate in candidates):
            raise ValueError("candidates of several jobs in one batch")
        check_sensitivity(job.workload)
        size = max(1, len(candidates)) if job.final else self.batch
        with self._outcomes.changed:
            self._outcomes.expect(job, len(candidates))
            for start in range(0, len(candidates), size):
                chunk = _Chunk(job, candidates[start : start + size])
                self._waiting.append(chunk)
                self._submitted.put(chunk)

    def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
        """Return the results of these jobs since the last call; of all jobs if none is named.

        Waits for at least one result, at most ``timeout`` seconds. The list is empty when nothing
        is pending or time is up.
        """
        try:
            return self._outcomes.take(timeout, *jobs)
        except Exception:
            self.close()
            raise

    def pending(self, job: Job | None = None) -> int:
        """Return the candidates, of one job or of all, whose results were not returned yet."""
        return self._outcomes.pending(job)

    def cancel(self, job: Job) -> None:
        """Drop the candidates of ``job`` that do not run yet: they are pending no more, and give
        no result. Those that run still do."""
        with self._outcomes.changed:
            for chunk in [chunk for chunk in self._waiting if chunk.job.id == job.id]:
                chunk.cancelled = True
                self._waiting.remove(chunk)
                self._outcomes.cancel(job, len(chunk.candidates))

    def drop(self, job: Job) -> None:
        """Forget ``job``: cancel what waits, and ignore the results of what runs."""
        self.cancel(job)
        self._outcomes.drop(job)

    def lacking(self, target: Target) -> str:
        """Return nothing: this machine is its own worker."""
        return ""

    def close(self) -> None:
        """Stop both threads and all children; what was pending is lost. Idempotent."""
        self._outcomes.close()
        self._runner.close()
        self._submitted.put(None)
        self._builder.close()
        build, run = self._threads
        build.join()
        run.join(LAST_WAIT)

    # -- the threads -----------------------------------------------------------------------

    def _build_all(self) -> None:
        while (chunk := self._submitted.get()) and not self._outcomes.closed:
            if self._takes_turns:
                self._built.join()
            if chunk.cancelled:
                continue
            try:
                for part in self._divided(chunk, retrying.build(self._builder, chunk.candidates)):
                    self._built.put(part)
            except Exception as error:
                self._outcomes.fail(error)
        self._built.put(None)

    def _run_all(self) -> None:
        while chunk := self._built.get():
            try:
                if self._starts(chunk):
                    for results in retrying.run(self._runner.run, chunk.job, chunk.built):
                        self._outcomes.add(results)
            except Exception as error:
                self._outcomes.fail(error)
            finally:
                self._built.task_done()

    def _divided(self, chunk: _Chunk, built: Sequence[Built]) -> list[_Chunk]:
        """Return the parts of a chunk that was built, which wait in its place; none if it was
        cancelled. What has no binary is done with."""
        with self._outcomes.changed:
            if chunk.cancelled:
                return []
            self._outcomes.add(
                [Result(b.candidate, b.failure()) for b in built if b.binary is None]
            )
            parts = _parts(chunk.job, [b for b in built if b.binary is not None])
            place = self._waiting.index(chunk)
            self._waiting[place : place + 1] = parts
            return parts

    def _starts(self, chunk: _Chunk) -> bool:
        """Take a chunk off the queue to run it; false if it was cancelled. Afterwards it cannot be
        cancelled.
        """
        with self._outcomes.changed:
            if self._outcomes.closed or chunk.cancelled:
                return False
            self._waiting.remove(chunk)
            return True
