"""Times many kernels in passes over all of them, so that a slow minute meets all of them alike.

Each pass is in an order of its own, and takes a few samples of a kernel. What is left of the time
goes to the fastest kernels, which a search is to tell apart, and the last pass over these says how
far the record can be believed: it is not part of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import spearmanr

from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Measurement
from tilewright.measure.timing import TimingProtocol, usual_score

FULL_PASSES = 3
LEADERS = 200
BEST = 8
PROTOCOL = TimingProtocol(
    slow_factor=math.inf, recheck_seconds=0.0, budget=math.inf, samples=2, contender_samples=2
)
"""Two samples in a pass, whatever they take."""


class Passes:
    """The samples of each of ``built`` by pass, and what its runner last said of it."""

    def __init__(self, runner: CRunner, built: Sequence[Built], seed: int = 0) -> None:
        self._runner, self._built = runner, built
        self._generator = np.random.default_rng(seed)
        self.said: dict[int, Measurement] = {}
        self.samples: list[dict[int, tuple[float, ...]]] = []

    def over(self, places: np.ndarray) -> None:
        """Time those at ``places``."""
        self.samples.append({})
        order = self._generator.permutation(places)
        job = self._built[order[0]].candidate.job
        said = self._runner.run(job, [self._built[place] for place in order])
        for place, measurement in zip(order, said, strict=True):
            self.said[place] = measurement
            if measurement.ok:
                self.samples[-1][place] = measurement.samples

    def scores(self, passes: slice) -> np.ndarray:
        """Return the score of each kernel by those passes together, NaN where they have none."""
        return np.array(
            [
                usual_score(known) if (known := self._known(place, passes)) else np.nan
                for place in range(len(self._built))
            ]
        )

    def measurements(self, passes: slice) -> list[Measurement]:
        """Return one of each kernel, of all its samples in those passes."""
        return [
            replace(said, samples=known, score=usual_score(known)) if said.ok else said
            for place, said in sorted(self.said.items())
            if (known := self._known(place, passes)) or not said.ok
        ]

    def _known(self, place: int, passes: slice) -> tuple[float, ...]:
        return tuple(s for each in self.samples[passes] for s in each.get(place, ()))


@dataclass(frozen=True)
class Repeatability:
    """The repeatability of a record.

    ``passes`` is the mean rank correlation of two passes over all kernels, ``leaders`` that of the
    record of the fastest kernels and one more pass over these; ``again`` are the times of the
    ``BEST`` in that pass, of what the record says; ``lost`` is how much slower the fastest of the
    record was in it than the fastest of it.
    """

    passes: float
    leaders: float
    again: tuple[float, ...]
    lost: float

    def __str__(self) -> str:
        return (
            f"rank correlation of two passes {self.passes:.4f}, of the leaders and one more of "
            f"them {self.leaders:.3f}; in that the best {BEST} took {min(self.again):.3f} to "
            f"{max(self.again):.3f} of the record, the first {self.lost:+.1%} beside its fastest"
        )


def timed(
    runner: CRunner, built: Sequence[Built], seconds: float
) -> tuple[list[Measurement], Repeatability]:
    """Return the measurements of all in ``FULL_PASSES`` passes, of the ``LEADERS`` in as many more
    as begin within ``seconds``."""
    deadline, passes = time.monotonic() + seconds, Passes(runner, built)
    for _ in range(FULL_PASSES):
        passes.over(np.arange(len(built)))
    leaders = np.argsort(passes.scores(slice(FULL_PASSES)))[:LEADERS]
    while time.monotonic() < deadline:
        passes.over(leaders)
    passes.over(leaders)
    kept = slice(len(passes.samples) - 1)
    return passes.measurements(kept), _repeatability(passes, leaders)


def _repeatability(passes: Passes, leaders: np.ndarray) -> Repeatability:
    each = [passes.scores(slice(i, i + 1)) for i in range(FULL_PASSES)]
    pairs = [(a, b) for i, a in enumerate(each) for b in each[:i]]
    record, again = passes.scores(slice(-1))[leaders], passes.scores(slice(-1, None))[leaders]
    best = np.argsort(record)[:BEST]
    return Repeatability(
        float(np.mean([_alike(a, b) for a, b in pairs])),
        _alike(record, again),
        tuple(again[best] / record[best]),
        float(again[best[0]] / np.nanmin(again) - 1.0),
    )


def _alike(one: np.ndarray, other: np.ndarray) -> float:
    return float(spearmanr(one, other, nan_policy="omit").statistic)
