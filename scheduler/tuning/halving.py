"""Comparisons of ever fewer schedules, until one decides: successive halving (Z. Karnin, T. Koren,
O. Somekh, Almost Optimal Exploration in Multi-Armed Bandits, ICML 2013)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from tilewright.measure.estimates import pooled
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.ranking import PRELIMINARY
from tilewright.spaces.schedule import Schedule


class Halving:
    """Says who is compared once more.

    Who is first among many is so partly by luck. Whoever takes part has taken part in all
    comparisons before, and the product of the latencies there ranks: so slow minutes of the machine
    count for all alike. What comes of a comparison that does not decide is ``preliminary``, but for
    who is first so far: should the run be killed now, that one is best, and else takes part in the
    next one, which counts instead. Who is left is measured alone in the end. What counts is scored
    by the samples of all comparisons that it took part in (:func:`measure.estimates.pooled`), for
    the last one may fall into a slow minute. ``next`` tells how many of so many go on, which are
    compared ``times`` times before fewer of them do.
    Who takes part for the first time is checked thoroughly. If who would win fails at last, or was
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

    def begin(self, schedules: Sequence[Schedule], decides: bool) -> bool:
        """These are compared now, which ``decides`` in any case where none would go on. Whether
        they are to be checked thoroughly."""
        self._decides = decides or not self._next(len(schedules))
        self._more = max(0, self._more - 1)
        self._known = {schedule: self._known.get(schedule, []) for schedule in schedules}
        new = not self._compared.issuperset(schedules)
        self._compared.update(schedules)
        self._fails = False
        return new

    def take(self, measurements: Sequence[Measurement]) -> list[Measurement]:
        """Take the results of a comparison, and return them as they rank."""
        self._fails |= any(m.status is Status.ERROR for m in measurements)
        at_once = self._known.keys() <= {m.schedule for m in measurements}
        for m in measurements:
            if m.ok and m.score is not None:
                self._known.setdefault(m.schedule, []).append(m)
            else:
                self._known.pop(m.schedule, None)
        if self._decides:
            self._decided.update(m.schedule for m in measurements if m.ok)
            return [self._by_all(m) for m in measurements]
        first = self._ranked()[:1] if at_once else []
        return [
            self._by_all(m) if m.schedule in first else replace(m, round=PRELIMINARY)
            for m in measurements
        ]

    def go_on(self) -> list[Schedule]:
        """Who is to be compared once more, now that all has come; nobody where it is decided."""
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

    def leaves_open(self, best: Schedule) -> bool:
        """True if ``best`` must still be compared, now that all results have come."""
        if best in self._decided:
            return False
        return self._fails or best not in self._compared


def _score(measurement: Measurement) -> float:
    assert measurement.score is not None
    return measurement.score
