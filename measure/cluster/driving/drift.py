"""Which workers have become slower than their peers: thermal throttling, a noisy neighbour. Pure.

All time the same reference kernel beside their candidates. What that takes on a GPU depends on
what is measured, for its clock falls while it waits and under load: on one H200 it took 23 to 28
microseconds in pieces of alike workloads, and 26 to 41 among different ones. Hence a piece is
compared with pieces of the same workload, and a worker drifts only if it stays slow. One that has
just begun is not judged: the clock of an idle GPU has yet to rise.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

DRIFT = 0.15  # more than the peers' time
PIECES = 5  # pieces whose reference times make a worker's usual one


@dataclass(frozen=True)
class Slow:
    """A piece whose reference took so many ``times`` as long as the peers'. ``lasting`` says how
    many pieces in a row were slow while the worker's usual time was: 0 if it is not."""

    times: float
    lasting: int


class Drift:
    """What each worker's reference kernel has taken lately, in seconds; peers are of one
    ``group``: of the same hardware and workload, timed by the same clock."""

    def __init__(self) -> None:
        self._times: dict[str, dict[str, deque[float]]] = defaultdict(dict)
        self._lasting: Counter[str] = Counter()

    def note(self, worker: str, group: str, seconds: Sequence[float]) -> Slow | None:
        """Take note of the samples of a piece; None where they are within the usual, where there
        are no peers, or before the worker has done ``PIECES`` of the group."""
        if not seconds:
            return None
        now, known = median(seconds), self._times[group]
        peers = [median(times) for peer, times in known.items() if peer != worker]
        own = known.setdefault(worker, deque(maxlen=PIECES))
        own.append(now)
        if not peers or len(own) < PIECES:
            return None
        allowed = (1 + DRIFT) * median(peers)
        if now <= allowed:
            del self._lasting[worker]
            return None
        self._lasting[worker] += median(own) > allowed
        return Slow(now / median(peers), self._lasting[worker])

    def forget(self, worker: str) -> None:
        """The worker is gone."""
        del self._lasting[worker]
        for known in self._times.values():
            known.pop(worker, None)
