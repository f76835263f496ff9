"""What samples say of a latency: the estimate that ranks, and how far it can be trusted.

An interval comes from a circular block bootstrap (D. Politis, J. Romano, A circular
block-resampling procedure for stationary data, 1992): samples that follow one another share a slow
second of the machine, so they are drawn again in runs, not one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose, sqrt
from typing import Any

import numpy as np

from measure.records.measurement import Measurement
from measure.timing import (
    Statistic,
    score,
    score_on_cpu,
    statistics_by_clock,
    steady_score,
    usual_score,
)

REPEATS = 400  # times that the samples are drawn again
COVERED = 0.95  # share of the repeats that lie in the interval
RIVALS = "rivals"
"""Where the info of a measurement has the samples of libraries that were timed in turns with it."""

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
    """The last of several comparisons of one schedule, scored by the samples of all of them: one
    that fell into a slow minute says little alone."""
    last = comparisons[-1]
    if len(comparisons) == 1:
        return last
    samples = tuple(s for m in comparisons for s in _samples(m))
    references = tuple(s for m in comparisons for s in m.reference_samples)
    rivals = {
        name: [s for m in comparisons for s in rival_samples(m, name)]
        for name in last.info.get(RIVALS, ())
    }
    return replace(
        last,
        score=statistic(last)(samples),
        samples=samples,
        reference_samples=references,
        info=last.info | ({RIVALS: rivals} if rivals else {}),
    )


def statistic(measurement: Measurement) -> Statistic:
    """By which the samples of a comparison rank."""
    if measurement.clock == "device":
        return steady_score
    elsewhere = bool(measurement.info.get("bytes_elsewhere"))
    return score_on_cpu(measurement.clock, True, elsewhere)


def latency(measurement: Measurement) -> Estimate | None:
    """The score in seconds and its interval; None without a score, or with one that is no statistic
    of its samples."""
    value, samples = measurement.score, measurement.samples
    if value is None or not samples:
        return None
    for own in statistics_by_clock(measurement.clock):
        if isclose(value, own(samples), rel_tol=1e-9):
            return _estimate(value, _again(samples, own))
    return None


def over_rival(measurement: Measurement, name: str) -> Estimate | None:
    """How many times as fast as the library called ``name``, which was timed in the same rounds by
    the same clock; None if it was not."""
    own, theirs = measurement.samples, rival_samples(measurement, name)
    if not own or not theirs or min(own) <= 0 or measurement.score is None:
        return None
    ranks = statistic(measurement)
    value = ranks(theirs) / ranks(own)
    return _estimate(value, _again(theirs, ranks) / _again(own, ranks))


def rival_samples(measurement: Measurement, name: str) -> tuple[float, ...]:
    """The times of a library, in seconds of one call; empty if it was not timed."""
    rivals = measurement.info.get(RIVALS)
    found = rivals.get(name) if isinstance(rivals, Mapping) else None
    if not isinstance(found, list) or not all(type(s) is float and s > 0 for s in found):
        return ()
    return tuple(found)


def _samples(measurement: Measurement) -> Sequence[float]:
    """Those of a right measurement; its score, if that is all there is."""
    assert measurement.score is not None
    return measurement.samples or (measurement.score,)


def _estimate(value: float, repeats: np.ndarray[Any, Any]) -> Estimate:
    tail = (1 - COVERED) / 2
    low, high = np.quantile(repeats, [tail, 1 - tail])
    return Estimate(value, min(value, float(low)), max(value, float(high)))


def _again(samples: Sequence[float], own: Statistic) -> np.ndarray[Any, Any]:
    """The statistic of ``samples`` drawn again and again. Where blocks begin is drawn as a share of
    all samples, and alike each time: two kernels that were timed in the same rounds meet the same
    seconds of the machine in each repeat."""
    given = np.asarray(samples, dtype=float)
    length = max(1, round(sqrt(len(given))))
    count = -(-len(given) // length)
    shares = np.random.default_rng(0).random((count, REPEATS)).T
    starts = (shares * len(given)).astype(int)[:, :, None]
    places = (starts + np.arange(length)) % len(given)
    drawn = given[places.reshape(REPEATS, -1)[:, : len(given)]]
    return np.asarray(np.quantile(drawn, _QUANTILES[own], axis=1))
