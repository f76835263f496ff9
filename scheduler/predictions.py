"""The schedules of a space that the roofline ranks first, and how long they should take.

Thousands of random schedules are drawn for it, by the same seed in every process. So what was found
for a workload and a target is remembered for the next call that asks for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.costmodel.roofs.peaks import MeasuredPeaks
from tilewright.scheduler.machine import measured_peaks
from tilewright.scheduler.strategies.history import distinct
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

SAMPLES = 4096
PREDICTED = 16
"""Predictions that are answered one after the other: a compiler may refuse the kernel of some."""
COMPARED = 512  # schedules of which the best says how good a given one is
REMEMBERED = 1024  # findings of all spaces together; each takes a few kilobytes


class PredictionCache:
    """The latest findings by their keys. Several threads may ask."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._known: dict[Hashable, Any] = {}

    def get(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """Return what ``find`` found for this key, now or before. It runs without the lock."""
        with self._lock:
            if key in self._known:
                return self._known[key]
        found = find()
        with self._lock:
            while len(self._known) >= self._size:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found


_MEMORY = PredictionCache(REMEMBERED)


def ranked(space: Space) -> tuple[tuple[Schedule, float], ...]:
    """Return at most ``PREDICTED`` of ``SAMPLES`` random schedules, the least estimate first, each
    once, with the estimate in seconds; NaN where the template reports too little for one."""
    peaks = measured_peaks(space.target)
    return _MEMORY.get((*_identity(space, peaks), SAMPLES), lambda: _ranked(space, peaks))


def least_estimate(space: Space) -> float:
    """Return the least estimate of ``COMPARED`` random schedules, in seconds; infinite without
    any."""
    peaks = measured_peaks(space.target)
    return _MEMORY.get((*_identity(space, peaks), COMPARED), lambda: _least(space, peaks))


def completed(space: Space, partial: Schedule) -> Schedule:
    """Return the schedule with all decisions that ``partial`` has whose others the roofline ranks
    first; ``partial`` itself if it lacks none.

    Raises :class:`InputError` for decisions that the space lacks, and if no schedule has them all.
    """
    if not space.why_not(partial):
        return partial
    rows = space.completions(partial, np.random.default_rng(0), COMPARED)
    if not len(rows):
        if len(partial.values) == len(space.templates[partial.template].decisions):
            raise InputError(f"schedule is not in the space: {space.why_not(partial)}")
        raise InputError(
            f"no schedule of the space has all of {str(partial)!r:.200}; allowed: fewer of these "
            "decisions, or other values"
        )
    seconds = AnalyticModel(measured_peaks(space.target)).latency(space, rows)
    return space.schedule(rows[int(np.argmin(np.nan_to_num(seconds, nan=np.inf)))])


def _ranked(space: Space, peaks: MeasuredPeaks | None) -> tuple[tuple[Schedule, float], ...]:
    population = space.sample(np.random.default_rng(0), SAMPLES)
    seconds = AnalyticModel(peaks).latency(space, population)
    order = np.argsort(np.nan_to_num(seconds, nan=np.inf), kind="stable")
    best = order[distinct(population[order])[:PREDICTED]]
    return tuple((space.schedule(population[row]), float(seconds[row])) for row in best)


def _least(space: Space, peaks: MeasuredPeaks | None) -> float:
    population = space.sample(np.random.default_rng(0), COMPARED)
    found = AnalyticModel(peaks).latency(space, population)
    return float(np.min(found[np.isfinite(found)], initial=np.inf))


def _identity(space: Space, peaks: MeasuredPeaks | None) -> tuple[Hashable, ...]:
    """Return all that findings depend on: equal spaces have equal schedules, whoever made them."""
    templates = tuple((type(each), each.decisions) for each in space.templates.values())
    return space.workload, space.target, templates, peaks
