"""Estimate a latency from samples, for ranking, and say how far the estimate can be trusted.

Intervals come from a circular block bootstrap (D. Politis, J. Romano, A circular block-resampling
procedure for stationary data, 1992). Neighbouring samples share a slow second of the machine, so
they are drawn again in runs, not one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose, sqrt
from statistics import fmean
from typing import Any

import numpy as np

from tilewright.measure.busy import WAITED, noted, waiting, waits
from tilewright.measure.records.measurement import Measurement
from tilewright.measure.timing import (
    Statistic,
    score,
    score_on_cpu,
    statistics_by_clock,
    steady_score,
    usual_score,
)

REPEATS = 400  # times that the samples are drawn again
COVERED = 0.95  # share of the repeats that lie in the interval
RIVALS, SAMPLES, BESIDE = "rivals", "samples", "beside"
"""Says where the info of a measurement has libraries that were timed in turns with it, by their
names: their samples, and the kernel's own of the same rounds."""

_QUANTILES: dict[Statistic, float] = {score: 0.0, usual_score: 0.25, steady_score: 0.5}


@dataclass(frozen=True)
class Estimate:
    """A value, a latency in seconds or a ratio, and the interval that holds 95 % of what other
    samples of the same machine would have given."""

    value: float
    low: float
    high: float

    @property
    def ends(self) -> list[float]:
        """The interval's."""
        return [self.low, self.high]


def pooled(comparisons: Sequence[Measurement]) -> Measurement:
    """Return the last of several comparisons of one schedule, scored by the samples of all of them,
    since one that fell into a slow minute says little alone. Its info says whether the machine was
    busy."""
    last = comparisons[-1]
    if len(comparisons) > 1:
        samples = tuple(s for m in comparisons for s in _samples(m))
        references = tuple(s for m in comparisons for s in m.reference_samples)
        last = replace(
            last,
            score=statistic(last)(samples),
            samples=samples,
            reference_samples=references,
            info=last.info | _pooled_rivals(comparisons) | _pooled_waits(comparisons),
        )
    words = noted(last)
    return replace(last, info=last.info | words) if words else last


def statistic(measurement: Measurement) -> Statistic:
    """Choose the statistic by which the samples of a comparison rank."""
    if measurement.clock == "device":
        return steady_score
    flushed = bool(measurement.info.get("bytes_elsewhere"))
    return score_on_cpu(measurement.clock, True, flushed)


def latency(measurement: Measurement) -> Estimate | None:
    """Return the score in seconds and its interval; None without a score, or with one that is no
    statistic of its samples."""
    value, samples = measurement.score, measurement.samples
    if value is None or not samples:
        return None
    for own in statistics_by_clock(measurement.clock):
        if isclose(value, own(samples), rel_tol=1e-9):
            return _estimate(value, _again(samples, own))
    return None


def over_rival(measurement: Measurement, name: str) -> Estimate | None:
    """Compute how many times as fast as the library called ``name`` a kernel is, if both were timed
    in the same rounds by the same clock.

    None if they were not, or if the wall clock was used while processes waited for a processor.
    Threads that wait for one another are then delayed by other processes; a library was once 40
    times as slow as on a machine at rest.
    """
    theirs, own = rival_samples(measurement, name)
    if not theirs or not own or (measurement.clock == "wall" and waits(measurement)):
        return None
    ranks = statistic(measurement)
    return _estimate(ranks(theirs) / ranks(own), _again(theirs, ranks) / _again(own, ranks))


def rival_seconds(measurement: Measurement, name: str) -> float | None:
    """Return the latency of the library called ``name`` by the same statistic; None if it was not
    timed."""
    theirs, _ = rival_samples(measurement, name)
    return statistic(measurement)(theirs) if theirs else None


def rival_samples(measurement: Measurement, name: str) -> tuple[Sequence[float], Sequence[float]]:
    """Return the times of a library in seconds of one call, and the kernel's own of the same
    rounds; empty if it was not timed."""
    found = _rivals(measurement).get(name)
    if not isinstance(found, Mapping):
        return [], []
    return _times(found.get(SAMPLES)), _times(found.get(BESIDE))


def rivals_info(rivals: Mapping[str, Sequence[float]], own: Sequence[float]) -> dict[str, Any]:
    """Return the info entries on libraries: their samples, and the kernel's own samples beside
    them.
    """
    told = {name: {SAMPLES: list(s), BESIDE: list(own)} for name, s in rivals.items() if s}
    return {RIVALS: told} if told else {}


def _rivals(measurement: Measurement) -> Mapping[str, object]:
    found = measurement.info.get(RIVALS)
    return found if isinstance(found, Mapping) else {}


def _times(told: object) -> list[float]:
    """Return a list of seconds; empty if it is none."""
    if not isinstance(told, list) or not all(type(s) is float and 0 < s < inf for s in told):
        return []
    return told


def _pooled_rivals(comparisons: Sequence[Measurement]) -> dict[str, Any]:
    """Pool the samples of rivals over all comparisons that timed them."""
    told: dict[str, Any] = {}
    for measurement in comparisons:
        for name in _rivals(measurement):
            theirs, own = rival_samples(measurement, name)
            into = told.setdefault(name, {SAMPLES: [], BESIDE: []})
            into[SAMPLES] += theirs
            into[BESIDE] += own
    return {RIVALS: told} if told else {}


def _pooled_waits(comparisons: Sequence[Measurement]) -> dict[str, Any]:
    told = [share for m in comparisons if (share := waiting(m)) is not None]
    return {WAITED: fmean(told)} if told else {}


def _samples(measurement: Measurement) -> Sequence[float]:
    """Return the samples that a right measurement is scored by; its score alone if there are
    none.
    """
    value, samples = measurement.score, measurement.samples
    assert value is not None
    scored = bool(samples) and isclose(statistic(measurement)(samples), value, rel_tol=1e-9)
    return samples if scored else (value,)


def _estimate(value: float, repeats: np.ndarray[Any, Any]) -> Estimate:
    tail = (1 - COVERED) / 2
    low, high = (quantile(repeats, share) for share in (tail, 1 - tail))
    return Estimate(value, min(value, float(low)), max(value, float(high)))


def _again(samples: Sequence[float], own: Statistic) -> np.ndarray[Any, Any]:
    """Return the statistic of ``samples`` drawn again and again. Where blocks begin is drawn as a
    share of all samples, and alike each time: two kernels that were timed in the same rounds meet
    the same seconds of the machine in each repeat."""
    given = np.asarray(samples, dtype=float)
    length = max(1, round(sqrt(len(given))))
    count = -(-len(given) // length)
    shares = np.random.default_rng(0).random((count, REPEATS)).T
    starts = (shares * len(given)).astype(int)[:, :, None]
    places = (starts + np.arange(length)) % len(given)
    drawn = given[places.reshape(REPEATS, -1)[:, : len(given)]]
    return quantile(drawn, _QUANTILES[own])


def quantile(values: np.ndarray[Any, Any], share: float) -> np.ndarray[Any, Any]:
    """Return the quantile along the last axis, to the bit as ``np.quantile`` gives it, but
    without NumPy's masked arrays, which take long to load."""
    ordered = np.sort(values, axis=-1)
    place = share * (ordered.shape[-1] - 1)
    below = int(place)
    above = min(below + 1, ordered.shape[-1] - 1)
    part, low, high = place - below, ordered[..., below], ordered[..., above]
    between = low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
    return np.asarray(between)
