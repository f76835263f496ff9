"""Schedules that earlier runs found, so that a new run begins with them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.recorded import recorded_schedule
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


def add_known(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--known``."""
    parser.add_argument(
        "--known", type=Path, nargs="+", default=[], help="results of earlier runs to begin with"
    )


def known_schedules(paths: Sequence[Path], case: str, space: Space) -> list[Schedule]:
    """Read the fast schedules of a case from the results at ``paths``, the fastest of each run
    first. A schedule that the space does not hold any more is replaced by a similar one."""
    rows: list[list[Any]] = []
    for path in paths:
        row = json.loads(path.read_text())["cases"].get(case, {})
        rows.append([each["schedule"] for each in row.get("explored", [])])
    longest = max(map(len, rows), default=0)
    turns = [row[i] for i in range(longest) for row in rows if i < len(row)]
    generator = np.random.default_rng(0)
    found = (space.nearest(recorded_schedule(each), generator) for each in turns)
    return list(dict.fromkeys(schedule for schedule in found if schedule is not None))
