"""Compare two databases: the best of each workload and target that both know, paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.measure.estimates import Estimate
from tilewright.scheduler.report.material import Material


@dataclass(frozen=True)
class Pair:
    """One workload on one target in two databases. ``ratio`` is the other one's latency over this
    one's, with the widest interval that both estimates allow: above 1 is faster than there."""

    name: str
    target: str
    here: Estimate
    there: Estimate
    ratio: Estimate

    @property
    def verdict(self) -> str:
        """Say in a word what the interval allows to say."""
        if self.ratio.high < 1:
            return "slower"
        return "faster" if self.ratio.low > 1 else "equal within the interval"


@dataclass(frozen=True)
class Comparison:
    """The pairs, the slowest beside the other first; how many of each side have no partner; and
    the geometric mean of the ratios, None without a pair."""

    pairs: tuple[Pair, ...]
    only_here: int
    only_there: int
    mean: float | None


def compared(here: Sequence[Material], there: Sequence[Material]) -> Comparison:
    """Return the comparison of two databases."""
    others = {(m.workload.key, m.target.fingerprint): m for m in there}
    pairs = []
    for material in here:
        other = others.get((material.workload.key, material.target.fingerprint))
        if other is not None and material.latency is not None and other.latency is not None:
            pairs.append(_pair(material, material.latency, other.latency))
    pairs.sort(key=lambda pair: pair.ratio.value)
    ratios = [pair.ratio.value for pair in pairs]
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else None
    return Comparison(tuple(pairs), len(here) - len(pairs), len(there) - len(pairs), mean)


def _pair(material: Material, here: Estimate, there: Estimate) -> Pair:
    ratio = Estimate(
        there.value / here.value, there.low / here.high, there.high / max(here.low, 1e-300)
    )
    return Pair(material.name, material.target.summary, here, there, ratio)
