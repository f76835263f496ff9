"""Random schedules on the hardware: how many of each template are right."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tilewright.scheduler.verification import draw, measure
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


def verify(
    results: dict[str, Any], workloads: Iterable[Workload], target: Target, schedules: int
) -> None:
    """Judge so many schedules of each workload, if the results lack it; they get the outcomes of
    each template by workload. Wrong schedules are printed."""
    if not schedules or "verification" in results:
        return
    spaces = (space_for(workload, target) for workload in workloads)
    results["verification"] = {
        str(space.workload): dict(outcomes(space, schedules, seed))
        for seed, space in enumerate(spaces)
    }
    print(json.dumps(results["verification"]), flush=True)


def outcomes(space: Space, schedules: int, seed: int) -> Counter[str]:
    """Return how often each template's schedules were right, wrong or refused."""
    found: Counter[str] = Counter()
    for verdict in measure(space, draw(space, schedules, seed)):
        found[f"{verdict.schedule.template}: {verdict.outcome}"] += 1
        if verdict.outcome == "wrong":
            print(f"WRONG {space.workload}: {verdict.schedule}: {verdict.error_text}")
    return found
