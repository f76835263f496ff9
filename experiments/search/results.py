"""What measurements leave in a file: figures with intervals, when and by which command."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.replay.intervals import mean


def estimate(values: np.ndarray) -> dict[str, float | None]:
    """The mean of repeats and its 95 % interval, rounded."""
    found = mean(np.asarray(values, dtype=np.float64))
    bounds = {"low": found.low, "high": found.high}
    rounded = {name: None if b is None else round(b, 4) for name, b in bounds.items()}
    return {"mean": round(found.value, 4), **rounded}


def write(path: Path, module: str, results: Mapping[str, Any]) -> None:
    """Write results of a run of ``module`` with its command and its day."""
    command = shlex.join(["python", "-m", module, *sys.argv[1:]])
    told = {"command": command, "date": datetime.now(UTC).date().isoformat(), **results}
    path.write_text(json.dumps(told, indent=1) + "\n")
