"""Print what a gradient may read of the forward pass, what it takes, and what is best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.workload_arguments import Differentiated

if TYPE_CHECKING:
    from tilewright.scheduler.splits import TimedSplit
    from tilewright.spaces.target import Target
    from tilewright.spaces.workloads.splits import Split
    from tilewright.spaces.workloads.workload import Workload

COLUMNS = ("saved", "#kept bytes", "#forward", "#gradient", "#both", "times", "")


def splits_on(workload: Workload, differentiated: Differentiated, target: Target) -> list[Split]:
    """Return the splits of a workload that a command line asks for, and that a target serves."""
    from tilewright.scheduler.splits import costs_on, served_splits
    from tilewright.spaces.workloads.gradients import splits

    found = splits(
        workload,
        differentiated.wrt or "",
        solved=differentiated.solved or "",
        held=differentiated.held or "",
        costs=costs_on(target),
    )
    return served_splits(found, target, differentiated.memory)


def show_splits(found: Sequence[Split], target: Target, db: str | Path, format: Format) -> None:
    """Print what is known of each split, with the best one marked."""
    from tilewright.scheduler.splits import timed

    every = [timed(split, target, db) for split in found]
    best = min(every, key=lambda each: each.rank)
    if format is Format.JSON:
        rows = [_as_json(each) | {"best": each is best} for each in every]
        print(json.dumps({"event": "splits", "target": target.to_json(), "splits": rows}))
        return
    from tilewright.scheduler.cli.output import print_table

    print_table(COLUMNS, [(*_row(each), "best" * (each is best)) for each in every])


def _row(each: TimedSplit) -> tuple[str, ...]:
    from tilewright.scheduler.cli.output import seconds

    times = (each.forward.latency, each.backward.latency, each.seconds)
    written = ("-" if time is None else seconds(time) for time in times)
    without = f" without {','.join(each.split.solved)}" if each.split.solved else ""
    return (
        (",".join(each.split.saved) or "-") + without,
        str(each.split.bytes),
        *written,
        "measured" if each.is_measured else "predicted",
    )


def _as_json(each: TimedSplit) -> dict[str, Any]:
    return {
        "saved": list(each.split.saved),
        "solved": list(each.split.solved),
        "kept": {array.name: array.bytes for array in each.split.kept},
        "kept_bytes": each.split.bytes,
        "latency_s": each.seconds,
        "measured": each.is_measured,
        "forward": each.forward.to_json(),
        "gradient": each.backward.to_json(),
    }
