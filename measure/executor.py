"""The executor of one machine: builds the next candidates while it runs the last."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence
from itertools import groupby

from measure.interfaces import Builder, Built, Runner
from measure.measurement import Candidate, Measurement
from measure.registry import builder_for, runner_for
from spaces.target import Target

CHUNK = 16


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
        cores = os.cpu_count() or 1
        threads = getattr(target, "threads", 1)
        self._takes_turns = 1 < threads >= cores
        jobs = jobs or (cores if self._takes_turns else max(1, cores - threads))
        self._builder = builder or builder_for(target, jobs)
        self._runner = runner or runner_for(target)
        self._submitted: queue.Queue[tuple[list[Candidate], bool] | None] = queue.Queue()
        self._built: queue.Queue[tuple[list[Built], bool] | None] = queue.Queue()
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
            size = len(group) if final else CHUNK
            for start in range(0, len(group), size):
                self._submitted.put((group[start : start + size], final))

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
        for thread in self._threads:
            thread.join()

    def _build_all(self) -> None:
        while (item := self._submitted.get()) and not self._closed:
            candidates, final = item
            if self._takes_turns:
                self._built.join()
            try:
                self._built.put((self._builder.build(candidates), final))
            except Exception as error:
                self._results.put(error)
        self._built.put(None)

    def _run_all(self) -> None:
        while item := self._built.get():
            built, final = item
            try:
                if not self._closed:
                    self._results.put(self._runner.run(built, self._best, final))
            except Exception as error:
                self._results.put(error)
            finally:
                self._built.task_done()
