"""Count and rank the results of a tuning run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewright.measure.records.measurement import Measurement
from tilewright.measure.records.ranking import FINAL, Ranking
from tilewright.spaces.algebra.sequences import in_turn
from tilewright.spaces.schedule import Schedule

APART = 3
"""Decisions in which schedules differ that are not nearly alike."""


class Scoreboard:
    """Counts measurements, and ranks them together with those of earlier runs.

    It ranks as the database does (``measure.records.ranking``). Attempts that the machine lost are
    counted separately, and change nothing else.
    """

    def __init__(self) -> None:
        self.trials = 0
        self.resumed = 0
        self.lost = 0
        self.failures: Counter[str] = Counter()
        self.losses: list[Measurement] = []  # in a row, since the machine last did its work
        self.history: list[tuple[int, float, float]] = []
        self.latency_to_beat: float | None = None  # the least that this run has measured itself
        self._ranking = Ranking()  # of this run and earlier ones, as they came
        self._last_gain = 0

    @property
    def best(self) -> Measurement | None:
        """The measurement that ranks first."""
        return self._ranking.best

    @property
    def right(self) -> int:
        """The number of schedules that may win; of thousands only the best are counted."""
        return len(self._ranking)

    @property
    def since_gain(self) -> int:
        """Trials of this run since the best last improved."""
        return self.trials - self._last_gain

    def resume(self, measurements: list[Measurement]) -> None:
        """Add measurements of earlier runs, oldest first. None of them is lost or doubted."""
        for measurement in measurements:
            self._ranking.add(measurement)
        self.resumed = len({measurement.schedule for measurement in measurements})

    def add(self, measurement: Measurement, elapsed: float) -> None:
        """Add one result of this run's search, ``elapsed`` seconds after its start."""
        if measurement.lost:
            self.lost += 1
            self.losses.append(measurement)
            return
        self.losses.clear()
        before = self.best
        self.trials += 1
        if measurement.error_kind is not None:
            self.failures[str(measurement.error_kind)] += 1
        self._see(measurement)
        if self.best is not before and measurement.score is not None:
            self._last_gain = self.trials
            self.history.append((self.trials, elapsed, measurement.score))

    def add_final(self, measurement: Measurement) -> None:
        """Add one result of a final comparison of this run."""
        self._see(measurement)

    def check(self, measurement: Measurement) -> None:
        """Add this run's own measurement of a schedule from an earlier run; it is no trial."""
        self._see(measurement)

    def withdraw(self, measurements: Sequence[Measurement]) -> None:
        """Remove measurements of earlier runs that this run found false."""
        if measurements:
            self._ranking.withdraw(measurements)

    def ranks(self) -> dict[Schedule, float]:
        """Return the seconds that each schedule that may win ranks by, the best first."""
        ranks: dict[Schedule, float] = {}
        for ranked, measurement in self._ranking.standing:
            ranks.setdefault(measurement.schedule, ranked)
        return ranks

    def leaders(self, count: int) -> list[Schedule]:
        """Choose ``count`` finalists.

        It takes in turn from the best already compared, the best not yet compared, and the best
        measured in the later half. Latencies of these groups are not comparable: if a machine
        becomes slower, all later results look worse. Among the first twice as many, near-duplicates
        of a faster one come last, because schedules further back are too slow.
        """
        ranked = sorted((measurement for _, measurement in self._ranking.standing), key=_by_score)
        compared = [m.schedule for m in ranked if m.round == FINAL]
        known = set(compared)
        others = [m.schedule for m in ranked if m.schedule not in known]
        late = self._ranking.later
        later = [schedule for schedule in others if schedule in late]
        distinct = dict.fromkeys(in_turn([compared, others, later]))
        return _various(list(distinct)[: 2 * count], count)

    def _see(self, measurement: Measurement) -> None:
        """Remember a schedule that this run has measured itself."""
        self._ranking.add(measurement)
        if measurement.ok and measurement.score is not None:
            known = [] if self.latency_to_beat is None else [self.latency_to_beat]
            self.latency_to_beat = min([measurement.score, *known])


def _various(schedules: Sequence[Schedule], count: int) -> list[Schedule]:
    chosen: list[Schedule] = []
    alike: list[Schedule] = []
    for schedule in schedules:
        if len(chosen) == count:
            break
        near = any(_alike(schedule, other) for other in chosen)
        (alike if near else chosen).append(schedule)
    return (chosen + alike)[:count]


def _alike(one: Schedule, other: Schedule) -> bool:
    differences = one.values.items() - other.values.items()
    return one.template == other.template and len(differences) < APART


def _by_score(measurement: Measurement) -> tuple[float, str]:
    return measurement.score or 0.0, measurement.schedule.key
