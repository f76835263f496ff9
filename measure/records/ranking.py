"""Choose and order the attempts that may win: one rule, for the database and for a run.

Latencies of a search and of a final comparison do not compare. The best of a search won partly by
luck, by 1-2 % on average and 10 % at worst. And a GPU that is at work all the time, as in a
comparison, is slower than one that waits for compilers. So:

- Of each schedule, the last attempt counts; its last comparison counts, too, if only a search
  measured it since. A preliminary comparison selects the schedules of the deciding one. It
  replaces earlier attempts, and ranks as a search does. Its winner counts as the winner of a
  deciding comparison until the next one. An attempt that the machine lost, or that a run found
  false, changes nothing.
- A comparison's latency ranks as it is.
- A search's latency ranks as if it were ``HANDICAP`` times as long. That is long enough that luck
  does not beat a compared schedule, and short enough that a run which was killed before its
  comparison counts.
- A search's latency from before the last comparison, whose schedule that comparison passed over,
  ranks as if it were ``PASSED_OVER`` times as long. It wins only far ahead, for example if the two
  were measured on different machines and met in one database later.

Earlier and later mean the order in which attempts became known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from tilewright.measure.records.measurement import Measurement
from tilewright.spaces.schedule import Schedule

HANDICAP = 1.1
PASSED_OVER = 2.0
SEARCH, PRELIMINARY, FINAL = "search", "preliminary", "final"
REMEMBERED = 1024
"""Schedules that a run keeps the attempts of: far more than any comparison takes."""

Placed = tuple[int, Measurement]
"""An attempt, after its place in the order in which they became known."""


def rank(measurement: Measurement, passed_over: bool = False) -> float:
    """Compute the seconds that a right attempt ranks by; the least is the best."""
    assert measurement.score is not None
    if measurement.round == FINAL:
        return measurement.score
    return measurement.score * (PASSED_OVER if passed_over else HANDICAP)


class Ranking:
    """Attempts as they become known, and the ones among them that may win.

    The cost of adding an attempt does not depend on the number of attempts. Memory is bounded, too:
    if there are more than ``REMEMBERED`` schedules the best are kept, and never more than twice as
    many.
    """

    def __init__(self, attempts: Iterable[Measurement] = ()) -> None:
        self._places = 0
        self._comparison = -1  # the place of the last one's last
        self._attempts: dict[Schedule, list[Placed]] = {}
        self._standing: dict[Schedule, list[Placed]] = {}  # those of them that may win
        self._queue: list[tuple[float, Placed]] = []  # a heap, by ranks that may have grown since
        for attempt in attempts:
            self.add(attempt)

    def __len__(self) -> int:
        """Return the number of schedules that may win, as far as they are kept."""
        return len(self._standing)

    @property
    def best(self) -> Measurement | None:
        """Return the attempt that ranks first; among equals, the one known first."""
        while self._queue:
            before, placed = self._queue[0]
            attempt = placed[1]
            if placed not in self._standing.get(attempt.schedule, ()):
                heappop(self._queue)
            elif before < (now := self._rank(placed)):
                heapreplace(self._queue, (now, placed))
            else:
                return attempt
        return None

    @property
    def standing(self) -> list[tuple[float, Measurement]]:
        """All attempts that may win, best first, each after its :func:`rank`."""
        every = ((self._rank(placed), placed) for own in self._standing.values() for placed in own)
        return [(ranked, attempt) for ranked, (_, attempt) in sorted(every)]

    @property
    def later(self) -> set[Schedule]:
        """Return the schedules that may win and became known in the later half of all that may."""
        latest = {schedule: own[-1][0] for schedule, own in self._standing.items()}
        places = sorted(latest.values())
        return {s for s, place in latest.items() if place >= places[len(places) // 2]}

    def add(self, attempt: Measurement) -> None:
        """Add an attempt that became known."""
        if attempt.lost or not (attempt.ok or attempt.schedule in self._attempts):
            return
        placed = (self._places, attempt)
        self._places += 1
        self._attempts.setdefault(attempt.schedule, []).append(placed)
        self._settle(attempt.schedule)
        if attempt.ok:
            heappush(self._queue, (rank(attempt), placed))
            if attempt.round == FINAL:
                self._comparison = placed[0]
        if len(self._attempts) > 2 * REMEMBERED:
            self._forget()

    def withdraw(self, attempts: Sequence[Measurement]) -> None:
        """Remove attempts that were found false, as if they had never been known."""
        for false in attempts:
            own = self._attempts.get(false.schedule, [])
            self._attempts[false.schedule] = [placed for placed in own if placed[1] != false]
            self._settle(false.schedule)
        every = [placed for own in self._attempts.values() for placed in own]
        compared = [place for place, known in every if known.ok and known.round == FINAL]
        self._comparison = max(compared, default=-1)
        self._queue_up()

    def _rank(self, placed: Placed) -> float:
        place, attempt = placed
        return rank(attempt, passed_over=place < self._comparison)

    def _settle(self, schedule: Schedule) -> None:
        """Note which attempts of a schedule may win."""
        self._standing[schedule] = _last(self._attempts[schedule])
        if not self._standing[schedule]:
            del self._standing[schedule]

    def _forget(self) -> None:
        """Keep the best schedules only."""
        kept = {attempt.schedule for _, attempt in self.standing[:REMEMBERED]}
        self._attempts = {s: own for s, own in self._attempts.items() if s in kept}
        self._standing = {s: own for s, own in self._standing.items() if s in kept}
        self._queue_up()

    def _queue_up(self) -> None:
        every = (placed for own in self._standing.values() for placed in own)
        self._queue = [(self._rank(placed), placed) for placed in every]
        heapify(self._queue)


def _last(attempts: Sequence[Placed]) -> list[Placed]:
    """Select a schedule's attempts that count, if they were right."""
    last = {attempt.round: (place, attempt) for place, attempt in attempts}
    compared = max([place for round, (place, _) in last.items() if round != SEARCH], default=-1)
    return [placed for placed in last.values() if placed[0] >= compared and placed[1].ok]
