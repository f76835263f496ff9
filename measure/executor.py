"""The executor of one machine: builds the next candidates while it runs the last."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from measure.cpu.cores import usable_cpus
from measure.interfaces import Builder, Built, Runner
from measure.measurement import Candidate, Measurement
from measure.registry import builder_for, runner_for
from spaces.target import Target

RUN_TOGETHER = 16  # candidates that are timed in turns
LAST_WAIT = 1.0  # seconds for a thread that computes a reference, which nothing interrupts


@dataclass(eq=False)
class _Chunk:
    """Candidates that are built, and then run, together."""

    candidates: list[Candidate]
    final: bool
    built: list[Built] | None = None
    cancelled: bool = False

    def parts(self) -> list[_Chunk]:
        """The built candidates, as many together as are run together."""
        assert self.built is not None
        size = len(self.candidates) if self.final else RUN_TOGETHER
        starts = range(0, len(self.candidates), size)
        pieces = ((self.candidates[i : i + size], self.built[i : i + size]) for i in starts)
        return [_Chunk(candidates, self.final, built) for candidates, built in pieces]


class LocalExecutor:
    """Builds and runs candidates of ``target`` on this machine.

    One thread builds chunk after chunk, another runs what is built. As many compilers run beside
    the kernels as these leave cores free; at least one, since a kernel of one thread is timed by
    its CPU time, which another process on its core disturbs little. Kernels that are timed by
    the wall clock on all cores would be slowed: then building and running take turns.

    ``builder`` and ``runner`` default to those of the target's kind; they are closed with the
    executor. An exception in either (a fault of the program or of the set-up, never of a
    candidate) is raised by :meth:`results`. Not thread-safe.
    """

    def __init__(
        self,
        target: Target,
        jobs: int | None = None,
        builder: Builder | None = None,
        runner: Runner | None = None,
    ) -> None:
        cores = usable_cpus()
        threads = getattr(target, "threads", 1)
        self._takes_turns = 1 < threads >= cores
        jobs = jobs or (cores if self._takes_turns else max(1, cores - threads))
        self._builder = builder or builder_for(target, jobs)
        self.batch = self._builder.batch
        self._runner = runner or runner_for(target)
        self._submitted: queue.Queue[_Chunk | None] = queue.Queue()
        self._built: queue.Queue[_Chunk | None] = queue.Queue()
        self._waiting: list[_Chunk] = []  # all that do not run yet
        self._lock = threading.Lock()  # for what is waiting, running and cancelled
        self._results: queue.Queue[list[Measurement] | Exception] = queue.Queue()
        self._pending = 0
        self._best: float | None = None
        self._workload = ""
        self._closed = False
        self._threads = [
            threading.Thread(target=loop, name=name, daemon=True)
            for name, loop in (("build", self._build_all), ("run", self._run_all))
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, candidates: Sequence[Candidate], final: bool = False) -> None:
        """Queue candidates. The latency to beat is forgotten when their workload changes.

        ``final`` ones are compared with each other: those of one workload run together.
        """
        if self._closed:
            raise RuntimeError("the executor is closed")
        self._pending += len(candidates)
        for key, alike in groupby(candidates, key=lambda candidate: candidate.workload.key):
            if key != self._workload:
                self._workload, self._best = key, None
            group = list(alike)
            size = len(group) if final else self.batch
            for start in range(0, len(group), size):
                chunk = _Chunk(group[start : start + size], final)
                with self._lock:
                    self._waiting.append(chunk)
                self._submitted.put(chunk)

    def results(self, timeout: float | None = None) -> list[Measurement]:
        """What has become known since the last call.

        Waits for at least one result, at most ``timeout`` seconds; empty when nothing is pending
        or time is up.
        """
        known: list[Measurement] = []
        while len(known) < self._pending:
            try:
                item = self._results.get(block=not known, timeout=timeout)
            except queue.Empty:
                break
            if isinstance(item, Exception):
                self.close()
                raise item
            known += item
        self._pending -= len(known)
        return known

    def pending(self) -> int:
        """Candidates whose results were not returned yet."""
        return self._pending

    def cancel(self) -> None:
        """Drop the candidates that do not run yet: they are pending no more, and give no result.
        Those that run still do."""
        with self._lock:
            for chunk in self._waiting:
                chunk.cancelled = True
                self._pending -= len(chunk.candidates)
            self._waiting.clear()

    def set_best(self, latency: float) -> None:
        """Tell the runner the latency to beat, in seconds."""
        self._best = latency

    def close(self) -> None:
        """Stop both threads and all children; what was pending is lost. Idempotent."""
        self._closed = True
        self._pending = 0
        self._runner.close()
        self._submitted.put(None)
        self._builder.close()
        build, run = self._threads
        build.join()
        run.join(LAST_WAIT)

    def _build_all(self) -> None:
        while (chunk := self._submitted.get()) and not self._closed:
            if self._takes_turns:
                self._built.join()
            if chunk.cancelled:
                continue
            try:
                chunk.built = self._builder.build(chunk.candidates)
                for part in self._divided(chunk):
                    self._built.put(part)
            except Exception as error:
                self._results.put(error)
        self._built.put(None)

    def _run_all(self) -> None:
        while chunk := self._built.get():
            try:
                if self._starts(chunk) and chunk.built is not None:
                    self._results.put(self._runner.run(chunk.built, self._best, chunk.final))
            except Exception as error:
                self._results.put(error)
            finally:
                self._built.task_done()

    def _divided(self, chunk: _Chunk) -> list[_Chunk]:
        """The parts of a built chunk, which wait in its place; none if it was cancelled."""
        with self._lock:
            if chunk.cancelled:
                return []
            place, parts = self._waiting.index(chunk), chunk.parts()
            self._waiting[place : place + 1] = parts
            return parts

    def _starts(self, chunk: _Chunk) -> bool:
        """Whether the chunk is to run; if so it can be cancelled no more."""
        with self._lock:
            if self._closed or chunk.cancelled:
                return False
            self._waiting.remove(chunk)
            return True
