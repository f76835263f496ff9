"""Which workers have become slower than their peers: thermal throttling, a noisy neighbour. Pure.

All time the same reference kernel beside their candidates. A worker drifts whose reference takes
``DRIFT`` longer than the median of its peers' does; what it measured meanwhile is not comparable.
A worker that has just begun is not judged: the clock of an idle GPU has yet to rise, and it rises
only while there is work.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from statistics import median

DRIFT = 0.15  # more than the peers' time
PIECES = 5  # pieces whose reference times make a worker's usual one


class Drift:
    """What each worker's reference kernel has taken lately, in seconds; peers are of one
    ``group``: of the same hardware, timed by the same clock."""

    def __init__(self) -> None:
        self._times: dict[str, dict[str, deque[float]]] = defaultdict(dict)

    def note(self, worker: str, group: str, seconds: Sequence[float]) -> float | None:
        """How many times as long as its peers' a worker's reference takes, by a piece's samples;
        None where that is within the usual, where there are no peers, or before it has done
        ``PIECES``."""
        if not seconds:
            return None
        now, known = median(seconds), self._times[group]
        peers = [median(times) for peer, times in known.items() if peer != worker]
        own = known.setdefault(worker, deque(maxlen=PIECES))
        own.append(now)
        if not peers or len(own) < PIECES or now <= (1 + DRIFT) * median(peers):
            return None
        return now / median(peers)

    def forget(self, worker: str) -> None:
        """The worker is gone."""
        for known in self._times.values():
            known.pop(worker, None)
