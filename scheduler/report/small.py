"""The small form of a report: the improvements of one run, for a notebook."""

from __future__ import annotations

from tilewright.scheduler.cli.output import times
from tilewright.scheduler.report.figure import Axis, Figure, Kind, series
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.tuning.events import TuningResult


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
