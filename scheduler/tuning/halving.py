"""Successive halving: compare fewer and fewer schedules until one wins.

Z. Karnin, T. Koren, O. Somekh, Almost Optimal Exploration in Multi-Armed Bandits, ICML 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log, prod
from statistics import fmean

from tilewright.measure.estimates import pooled
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.ranking import PRELIMINARY
from tilewright.spaces.schedule import Schedule


class Halving:
    """Chooses the schedules that are compared once more.

    The winner among many is partly lucky. A participant has taken part in all comparisons before,
    and ranks by the product of its latencies there. So slow minutes of the machine count for all
    alike.

    Results of a comparison that does not decide are ``preliminary``, except that of the current
    winner: if the run is killed now, it is the best. Otherwise it takes part in the next
    comparison, which counts instead. The last one left is measured alone. Its score pools the
    samples of all its comparisons (:func:`measure.estimates.pooled`), because the last one may fall
    into a slow minute.

    ``next`` returns how many of so many go on. These are compared ``times`` times before their
    number falls again. A new participant is checked thoroughly. If the winner fails at last, or was
    never compared, the best that remain are compared anew.
    """

    def __init__(self, next: Callable[[int], int], times: int = 1) -> None:
        self._next, self._times = next, times
        self._decides = True
        self._more = 1  # comparisons until fewer go on
        self._known: dict[Schedule, list[Measurement]] = {}  # in each comparison so far
        self._compared: set[Schedule] = set()
        self._decided: set[Schedule] = set()  # those right in a comparison that decides
        self._fails = False  # whether one failed in the latest comparison
        self._scores: list[dict[Schedule, float]] = []  # of all schedules, by comparison

    def begin(self, schedules: Sequence[Schedule], decides: bool) -> bool:
        """Begin a comparison of these schedules; True if they must be checked thoroughly.

        It ``decides`` in any case if no schedule would go on.
        """
        self._decides = decides or not self._next(len(schedules))
        self._more = max(0, self._more - 1)
        self._known = {schedule: self._known.get(schedule, []) for schedule in schedules}
        new = not self._compared.issuperset(schedules)
        self._compared.update(schedules)
        self._fails = False
        self._scores.append({})
        return new

    def take(self, measurements: Sequence[Measurement]) -> list[Measurement]:
        """Take the results of a comparison, and return them as they rank."""
        self._fails |= any(m.status is Status.ERROR for m in measurements)
        at_once = self._known.keys() <= {m.schedule for m in measurements}
        for m in measurements:
            if m.ok and m.score is not None:
                self._known.setdefault(m.schedule, []).append(m)
                self._scores[-1][m.schedule] = m.score
            else:
                self._known.pop(m.schedule, None)
                self._forget(m)
        if self._decides:
            self._decided.update(m.schedule for m in measurements if m.ok)
            return [self._by_all(m) for m in measurements]
        first = self._ranked()[:1] if at_once else []
        return [
            self._by_all(m) if m.schedule in first else replace(m, round=PRELIMINARY)
            for m in measurements
        ]

    def _forget(self, failed: Measurement) -> None:
        """Remove the scores of a schedule that proved wrong."""
        if failed.status is Status.ERROR:
            for scores in self._scores:
                scores.pop(failed.schedule, None)

    def go_on(self) -> list[Schedule]:
        """Return the schedules to compare once more, now that all results are in; none if one has
        won."""
        if self._decides:
            return []
        ranked = self._ranked()
        if not self._more:
            ranked = ranked[: max(1, self._next(len(ranked)))]
            self._more = self._times
        return ranked

    def _ranked(self) -> list[Schedule]:
        return sorted(self._known, key=lambda schedule: prod(map(_score, self._known[schedule])))

    def _by_all(self, latest: Measurement) -> Measurement:
        """Pool a result with all earlier comparisons of its schedule."""
        return pooled(self._known.get(latest.schedule, [])) if latest.ok else latest

    def shares(self, best: Schedule) -> dict[Schedule, float]:
        """Return the speeds of all schedules that were compared with ``best``, as shares of its
        speed: geometric means over the comparisons of both."""
        logarithms: dict[Schedule, list[float]] = {}
        for scores in self._scores:
            for schedule, score in scores.items() if best in scores else ():
                logarithms.setdefault(schedule, []).append(log(scores[best] / score))
        return {schedule: exp(fmean(known)) for schedule, known in logarithms.items()}

    def leaves_open(self, best: Schedule) -> bool:
        """Return True if ``best`` must still be compared, now that all results have come."""
        if best in self._decided:
            return False
        return self._fails or best not in self._compared


def _score(measurement: Measurement) -> float:
    assert measurement.score is not None
    return measurement.score
