"""The small form of a report, for a notebook: the improvements of a run, the regions of a model."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import TYPE_CHECKING

from tilewright.scheduler.cli.output import times
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.report.figure import Axis, Figure, Kind, series
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.tuning.events import TuningResult

if TYPE_CHECKING:
    from tilewright.scheduler.torch.backend.explanation import Explanation, RegionReport

MOST_REGIONS = 20


def improvements(result: TuningResult) -> Figure:
    """Return the best so far over the trials of a run: latencies, or the value of a suite."""
    steps = [(float(trial), value) for trial, _, value in result.history]
    end = (float(max(result.trials, result.history[-1][0])), steps[-1][1])
    first, last = steps[0][1], steps[-1][1]
    gain = first / last if result.objective is Objective.LATENCY else last / first
    unit = "s" if result.objective is Objective.LATENCY else ""
    label = "latency of the best" if not result.title else f"{result.objective} of the suite"
    return Figure(
        "improvements",
        "The best so far",
        f"{times(gain)} over the first in {result.trials} trials",
        Axis("trial"),
        Axis(label, unit, log=True),
        (series("best so far", Kind.STEPS, [*steps, end]),),
    )


def regions(explanation: Explanation) -> Figure:
    """Return the speed of the kernel of each region over torch's, and who computes it. The caption
    has the gain that these expect of the whole, and the one that was measured."""
    timed = [
        region
        for graph in explanation.graphs
        for region in graph.regions
        if region.ours_seconds and region.torch_seconds
    ]
    named = [f"{each.by}: {plain(each.program)}" for each in timed[:MOST_REGIONS]]
    gains = [(each.gain or 0.0, float(place)) for place, each in enumerate(timed[:MOST_REGIONS])]
    return Figure(
        "regions",
        "Kernels beside torch",
        ", ".join(_gains(explanation, timed)),
        Axis("speed of the kernel, of torch's", "x"),
        Axis("region", names=tuple(named)),
        (series("region", Kind.BARS, gains),),
    )


def _gains(explanation: Explanation, timed: list[RegionReport]) -> Iterator[str]:
    """Yield what is known of regions together, and of graphs as they are."""
    alone = fsum(each.places * (each.torch_seconds or 0.0) for each in timed)
    faster = (min(each.ours_seconds or 0.0, each.torch_seconds or 0.0) for each in timed)
    best = fsum(each.places * seconds for each, seconds in zip(timed, faster, strict=True))
    if best > 0:
        yield f"{times(alone / best)} expected of the regions that were timed"
    for graph in explanation.graphs:
        yield graph.line
