"""Results that wait for whoever asks for them: what executors have in common."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence, Set

from tilewright.measure.records.measurement import Job, Result


class Outcomes:
    """The number of pending candidates of each job, and the results that were not fetched yet.

    ``changed`` guards all of it, and whatever else an executor guards with it; it is notified of
    all that :meth:`take` may wait for. Thread-safe.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.closed = False
        self._known: list[Result] = []
        self._pending: Counter[str] = Counter()  # by job
        self._dropped: set[str] = set()
        self._fault: Exception | None = None

    def expect(self, job: Job, count: int) -> None:
        """Note that ``count`` more candidates of ``job`` are pending. RuntimeError once it is
        closed.
        """
        with self.changed:
            if self.closed:
                raise RuntimeError("the executor is closed")
            self._pending[job.id] += count

    def add(self, results: Sequence[Result]) -> None:
        """Add new results."""
        with self.changed:
            if not self.closed:
                self._known += [r for r in results if r.candidate.job.id not in self._dropped]
            self.changed.notify_all()

    def fail(self, error: Exception) -> None:
        """Note that no more results can come; the first reason counts."""
        with self.changed:
            if not self.closed:
                self._fault = self._fault or error
            self.changed.notify_all()

    @property
    def failed(self) -> bool:
        """Tell whether no more results can come."""
        return self._fault is not None

    def take(self, timeout: float | None, *jobs: Job) -> list[Result]:
        """Return the results of these jobs, or of all if none is named, that became known, each
        once; waits for one, at most ``timeout`` seconds, if any is pending. Raises what it failed
        by once there are none."""
        ids = {job.id for job in jobs}
        with self.changed:
            self.changed.wait_for(lambda: self._has_news(ids), timeout)
            taken = [result for result in self._known if _is_of(result, ids)]
            if self._fault is not None and not taken:
                raise self._fault
            self._known = [result for result in self._known if not _is_of(result, ids)]
            self._pending.subtract(result.candidate.job.id for result in taken)
            return taken

    def pending(self, job: Job | None = None) -> int:
        """Return the candidates, of one job or of all, whose results were not taken yet."""
        with self.changed:
            return self._pending.total() if job is None else self._pending[job.id]

    def cancel(self, job: Job, count: int) -> None:
        """Note that ``count`` candidates of ``job`` will give no result."""
        with self.changed:
            if not self.closed:
                self._pending[job.id] -= count
            self.changed.notify_all()

    def drop(self, job: Job) -> None:
        """Forget a job and its results."""
        with self.changed:
            self._known = [result for result in self._known if not _is_of(result, {job.id})]
            del self._pending[job.id]
            self._dropped.add(job.id)
            self.changed.notify_all()

    def close(self) -> None:
        """Forget everything that is pending."""
        with self.changed:
            self.closed = True
            self._pending.clear()
            self._known.clear()
            self.changed.notify_all()

    def _has_news(self, ids: Set[str]) -> bool:
        known = any(_is_of(result, ids) for result in self._known)
        return known or self._fault is not None or not self._any_pending(ids)

    def _any_pending(self, ids: Set[str]) -> bool:
        return any(self._pending[id] for id in ids or self._pending)


def _is_of(result: Result, ids: Set[str]) -> bool:
    return not ids or result.candidate.job.id in ids
