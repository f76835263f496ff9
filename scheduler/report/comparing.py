"""Compare two databases: the best of each workload and target that both know, paired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.measure.estimates import Estimate
from tilewright.scheduler.report.figure import Axis, Figure, Kind, series
from tilewright.scheduler.report.material import Material
from tilewright.scheduler.report.plausible import plausible

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


RATIOS = "ratios"
"""The name of the figure of a comparison."""
MOST_PAIRS = 40  # of a figure
VERDICTS = ("slower", "equal within the interval", "faster")


@dataclass(frozen=True)
class Pair:
    """One workload on one target in two databases. ``ratio`` is the other one's latency over this
    one's, with the widest interval that both estimates allow: above 1 is faster than there."""

    workload: Workload
    name: str
    target: str
    here: Estimate
    there: Estimate
    ratio: Estimate

    def to_json(self) -> dict[str, Any]:
        """Return the pair as a JSON object."""
        return {
            "workload": self.workload.to_json(),
            "target": self.target,
            "here": asdict(self.here),
            "there": asdict(self.there),
            "ratio": asdict(self.ratio),
            "verdict": self.verdict,
        }

    @property
    def verdict(self) -> str:
        """Say in a word what the interval allows to say."""
        if self.ratio.high < 1:
            return VERDICTS[0]
        return VERDICTS[2] if self.ratio.low > 1 else VERDICTS[1]


@dataclass(frozen=True)
class Comparison:
    """The pairs, the slowest beside the other first; how many of each side have no partner; and
    the geometric mean of the ratios, None without a pair."""

    pairs: tuple[Pair, ...]
    only_here: int
    only_there: int
    mean: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        return {
            "pairs": [pair.to_json() for pair in self.pairs],
            "only_here": self.only_here,
            "only_there": self.only_there,
            "mean": self.mean,
        }


def ratios(comparison: Comparison) -> Figure:
    """Show the ratio of each pair with its interval, the greatest regressions first."""
    pairs = comparison.pairs[:MOST_PAIRS]
    found: dict[str, list[tuple[float, Estimate]]] = {}
    for place, pair in enumerate(pairs):
        found.setdefault(pair.verdict, []).append((float(place), pair.ratio))
    drawn = []
    for verdict in VERDICTS:
        own = found.get(verdict, [])
        ends = [(end, y) for y, ratio in own for end in (ratio.low, ratio.high)]
        points = [(ratio.value, y) for y, ratio in own]
        drawn.append(series(verdict, Kind.POINTS, points))
        drawn.append(series("", Kind.SPANS, ends))
    count = Counter(pair.verdict for pair in comparison.pairs)
    caption = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS)
    if len(pairs) < len(comparison.pairs):
        caption += f"; the {len(pairs)} slowest are drawn"
    return Figure(
        RATIOS,
        "Speed over the other database",
        caption,
        Axis("speed, of the other database", "x", log=True),
        Axis("", names=tuple(pair.name for pair in pairs)),
        (*drawn, series("as fast", Kind.LINE, [(1.0, -0.5), (1.0, len(pairs) - 0.5)])),
    )


def compared(here: Sequence[Material], there: Sequence[Material]) -> Comparison:
    """Return the comparison of two databases."""
    others = {(m.workload.key, m.target.fingerprint): m for m in there}
    pairs = []
    for material in here:
        other = others.get((material.workload.key, material.target.fingerprint))
        if other is not None and material.latency is not None and other.latency is not None:
            pairs.append(_pair(material, material.latency, other.latency))
    pairs.sort(key=lambda pair: pair.ratio.value)
    ratios = [ratio for pair in pairs if (ratio := plausible(pair.ratio.value))]
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else None
    return Comparison(tuple(pairs), len(here) - len(pairs), len(there) - len(pairs), mean)


def _pair(material: Material, here: Estimate, there: Estimate) -> Pair:
    ratio = Estimate(
        _over(there.value, here.value), _over(there.low, here.high), _over(there.high, here.low)
    )
    return Pair(material.workload, material.name, material.target.summary, here, there, ratio)


def _over(there: float, here: float) -> float:
    """Return a ratio of times, a finite one whatever they are."""
    return min(there / max(here, 1e-300), 1e300)
