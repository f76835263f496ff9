"""The workers of a cluster that are ready, those of them that rest, and how others ended."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tilewright.spaces.target import Target

REMEMBERED = 1000
"""Workers that are gone, whose ends are told."""


@dataclass(frozen=True)
class Worker:
    """A worker that is ready: ``role`` is build or run, ``serves`` says for which targets."""

    id: str
    role: str
    serves: Callable[[Target], bool]


class ReadyWorkers:
    """The workers that have joined and have not left. Times are Unix times."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}
        self._resting_until: dict[str, float] = {}
        self._ended: deque[tuple[Worker, str]] = deque(maxlen=REMEMBERED)

    def join(self, worker: Worker) -> None:
        """A worker is ready."""
        self._workers[worker.id] = worker

    def leave(self, worker: str, why: str) -> None:
        """A worker is gone."""
        if left := self._workers.pop(worker, None):
            self._ended.append((left, why))
        self._resting_until.pop(worker, None)

    def rest(self, worker: str, until: float) -> None:
        """Give a worker nothing to do for a while."""
        self._resting_until[worker] = until

    def rests(self, worker: str, now: float) -> bool:
        """Tell whether a worker is to get no work for now."""
        return self._resting_until.get(worker, now) > now

    def free(self, role: str, busy: Collection[str], now: float) -> list[Worker]:
        """Return the workers of a role that are not ``busy`` and do not rest."""
        found = [w for w in self._workers.values() if w.role == role and w.id not in busy]
        return [worker for worker in found if not self.rests(worker.id, now)]

    def serving(self, target: Target, role: str = "run") -> list[Worker]:
        """Return the workers that do this for ``target``."""
        return [w for w in self._workers.values() if w.role == role and w.serves(target)]

    def ended(self, target: Target, role: str) -> Counter[str]:
        """Count the lost workers that had this role for ``target``, by reason, among the last
        :data:`REMEMBERED`.
        """
        return Counter(why for w, why in self._ended if w.role == role and w.serves(target))
