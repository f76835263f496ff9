"""The best schedules of an exploration, timed in turns with rivals. Needs a GPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from experiments.gpu_matmul.timing import interleave
from experiments.operators.exploring.explore import Explorer
from experiments.operators.summary import OURS, spread
from tilewright.spaces.schedule import Schedule

FINALISTS = 3
CANDIDATES = 12
"""The fastest of an exploration, which times few calls on a cool chip: finalists are those of them
that are the fastest on one that has been at work."""
ROUNDS, SECONDS = 10, 0.5
"""The rounds and seconds that choose the finalists."""
KEPT = 12
"""Schedules in the results, with the times that exploring took."""


def compare(
    explorer: Explorer, rivals: Mapping[str, Callable[[], object]], **timing: Any
) -> dict[str, Any]:
    """Return the row of the results; ``timing`` is that of
    :func:`experiments.gpu_matmul.timing.interleave`."""
    explored = [
        {"us": 1e6 * explorer.seconds[s], "schedule": s.to_json()} for s in explorer.best[:KEPT]
    ]
    best = finalists(explorer, **timing)
    calls: dict[str, Any] = {f"{OURS} {n}": explorer.calls[s] for n, s in enumerate(best)}
    times = interleave(calls | dict(rivals), **timing)
    moved = explorer.space.workload.least_bytes
    row = {"outcomes": dict(explorer.outcomes), "explored": explored}
    return row | summary(times, [s.to_json() for s in best], moved)


def finalists(explorer: Explorer, **timing: Any) -> list[Schedule]:
    """Return the fastest of an exploration when they are timed in turns, on a chip at work."""
    candidates = explorer.best[:CANDIDATES]
    if len(candidates) <= FINALISTS:
        return candidates
    calls = {str(n): explorer.calls[schedule] for n, schedule in enumerate(candidates)}
    times = interleave(calls, **(timing | {"rounds": ROUNDS, "seconds": SECONDS}))
    order = sorted(calls, key=lambda name: statistics.median(times[name]))
    return [candidates[int(name)] for name in order[:FINALISTS]]


def summary(times: Mapping[str, list[float]], schedules: list[Any], moved: int) -> dict[str, Any]:
    """Summarise times by :func:`spread`, with our best finalist as ``tilewright``, and GB/s."""
    ours = {name: t for name, t in times.items() if name.startswith(OURS)}
    others = {name: t for name, t in times.items() if name not in ours}
    found: dict[str, Any] = {}
    if ours:
        first = min(ours, key=lambda name: statistics.median(ours[name]))
        others = {OURS: ours[first], **others}
        found["schedule"] = schedules[list(ours).index(first)]
    found |= spread(others)
    return found | {"gb_per_s": {n: moved / t / 1e9 for n, t in found["median_s"].items()}}


def rates(row: Mapping[str, Any], flops: int) -> dict[str, float]:
    """TFLOP/s by name, of the medians."""
    return {name: flops / t / 1e12 for name, t in row["median_s"].items()}
