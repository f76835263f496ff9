"""Find workers that became slower than their peers: thermal throttling, a noisy neighbour. Pure.

All workers time the same reference kernel beside their candidates. Its time on a GPU depends on the
candidates, because the clock falls while the GPU waits and under load. On one H200 it took 23 to 28
microseconds in pieces of similar workloads, and 26 to 41 among different ones. Of two healthy GPUs,
each was a fifth to a third slower than the other for several pieces in a row. A piece is therefore
compared with pieces of the same workload, and a worker drifts only if none of its last pieces came
near its peers' usual best. A worker that has just begun is not judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

DRIFT = 0.15  # share by which a worker's time may exceed its peers'
PIECES = 5  # pieces of a workload by which a worker is judged


@dataclass(frozen=True)
class Slow:
    """A piece whose reference took so many ``times`` as long as the peers'. ``lasting`` says how
    many pieces in a row have shown that the worker drifts: 0 if it does not."""

    times: float
    lasting: int


@dataclass(frozen=True)
class _Piece:
    """The reference kernel's time in one piece."""

    usual: float
    least: float


class Drift:
    """Recent times of each worker's reference kernel, in seconds. Peers are workers of one
    ``group``: the same hardware and workload, timed by the same clock.
    """

    def __init__(self) -> None:
        self._pieces: dict[str, dict[str, deque[_Piece]]] = defaultdict(dict)
        self._lasting: Counter[str] = Counter()

    def note(self, worker: str, group: str, seconds: Sequence[float]) -> Slow | None:
        """Take note of the samples of a piece; None where they are within the usual, where there
        are no peers, or before the worker has done ``PIECES`` of the group."""
        if not seconds:
            return None
        now, known = _Piece(median(seconds), min(seconds)), self._pieces[group]
        peers = [pieces for peer, pieces in known.items() if peer != worker]
        own = known.setdefault(worker, deque(maxlen=PIECES))
        own.append(now)
        if not peers or len(own) < PIECES:
            return None
        usual = median(median(piece.usual for piece in pieces) for pieces in peers)
        least = median(median(piece.least for piece in pieces) for pieces in peers)
        if now.usual <= (1 + DRIFT) * usual:
            del self._lasting[worker]
            return None
        self._lasting[worker] += min(piece.least for piece in own) > (1 + DRIFT) * least
        return Slow(now.usual / usual, self._lasting[worker])

    def forget(self, worker: str) -> None:
        """The worker is gone."""
        del self._lasting[worker]
        for known in self._pieces.values():
            known.pop(worker, None)
