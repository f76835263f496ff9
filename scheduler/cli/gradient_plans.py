"""Print what a gradient may read of the forward pass, what it takes, and what is best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.workload_arguments import Differentiated

if TYPE_CHECKING:
    from tilewright.scheduler.gradient_plans import TimedPlan
    from tilewright.spaces.target import Target
    from tilewright.spaces.workloads.gradient_plans import GradientPlan
    from tilewright.spaces.workloads.workload import Workload

COLUMNS = ("saved", "#kept bytes", "#forward", "#gradient", "#both", "times", "")


def plans_on(
    workload: Workload, differentiated: Differentiated, target: Target
) -> list[GradientPlan]:
    """Return the plans of a workload that a command line asks for, and that a target serves."""
    from tilewright.scheduler.gradient_plans import costs_on, served_plans
    from tilewright.spaces.workloads.gradients import gradient_plans

    found = gradient_plans(
        workload,
        differentiated.wrt or "",
        solved=differentiated.solved or "",
        held=differentiated.held or "",
        costs=costs_on(target),
    )
    return served_plans(found, target, differentiated.memory)


def show_plans(
    found: Sequence[GradientPlan], target: Target, db: str | Path, format: Format
) -> None:
    """Print what is known of each plan, with the best one marked."""
    from tilewright.scheduler.gradient_plans import timed

    every = [timed(plan, target, db) for plan in found]
    best = min(every, key=lambda each: each.rank)
    if format is Format.JSON:
        rows = [_as_json(each) | {"best": each is best} for each in every]
        print(json.dumps({"event": "gradient_plans", "target": target.to_json(), "plans": rows}))
        return
    from tilewright.scheduler.cli.output import print_table

    print_table(COLUMNS, [(*_row(each), "best" * (each is best)) for each in every])


def _row(each: TimedPlan) -> tuple[str, ...]:
    from tilewright.scheduler.cli.output import seconds

    times = (each.forward.latency, each.backward.latency, each.seconds)
    written = ("-" if time is None else seconds(time) for time in times)
    without = f" without {','.join(each.plan.solved)}" if each.plan.solved else ""
    return (
        (",".join(each.plan.saved) or "-") + without,
        str(each.plan.bytes),
        *written,
        "measured" if each.is_measured else "predicted",
    )


def _as_json(each: TimedPlan) -> dict[str, Any]:
    return {
        "saved": list(each.plan.saved),
        "solved": list(each.plan.solved),
        "kept": {array.name: array.bytes for array in each.plan.kept},
        "kept_bytes": each.plan.bytes,
        "latency_s": each.seconds,
        "measured": each.is_measured,
        "forward": each.forward.to_json(),
        "gradient": each.backward.to_json(),
    }
