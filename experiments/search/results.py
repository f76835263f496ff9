"""Files of results: figures with intervals, date and command, and the runs of searches."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.scheduler.replay.intervals import mean

RESULTS = Path(__file__).parent / "results"
SHARE_OF_FASTEST = 0.99


def estimate(values: np.ndarray) -> dict[str, float | None]:
    """Return the mean of repeats and its 95 % interval, rounded."""
    found = mean(np.asarray(values, dtype=np.float64))
    bounds = {"low": found.low, "high": found.high}
    rounded = {name: None if b is None else round(b, 4) for name, b in bounds.items()}
    return {"mean": round(found.value, 4), **rounded}


def write(path: Path, module: str, results: Mapping[str, Any]) -> None:
    """Write results of a run of ``module`` with its command and its day."""
    command = shlex.join(["python", "-m", module, *sys.argv[1:]])
    told = {"command": command, "date": datetime.now(UTC).date().isoformat(), **results}
    path.write_text(json.dumps(told, indent=1) + "\n")


@dataclass(frozen=True)
class Found:
    """The runs of a search: ``best`` so far, of the fastest schedule's speed, [spaces, repeats,
    trials], and the mean over spaces of what else was scored, NaN where that is not known."""

    spaces: Sequence[str]
    best: np.ndarray
    performance: float
    milliseconds: float

    @property
    def needed(self) -> np.ndarray:
        """Evaluations until each run reached ``SHARE_OF_FASTEST``; infinite where it did not."""
        there = self.best >= SHARE_OF_FASTEST
        return np.where(there.any(axis=2), there.argmax(axis=2) + 1.0, np.inf)


def read(file: str, search: str) -> Found:
    """Return the runs of a search that a file of ``results`` holds."""
    lines = [line for line in lines_of(file) if line["search"] == search and line["space"]]

    def scored(key: str) -> float:
        known = [line["scores"][key]["value"] for line in lines if key in line["scores"]]
        return float(np.mean(known)) if known else np.nan

    best = np.array([[curve(line, gains) for gains in line["gains"]] for line in lines])
    spaces = [line["space"] for line in lines]
    return Found(spaces, best, scored("p"), scored("search_ms"))


def lines_of(file: str) -> list[dict[str, Any]]:
    """Read the lines of a file of ``results``."""
    with gzip.open(RESULTS / f"{file}.jsonl.gz", "rt") as text:
        return [json.loads(line) for line in text]


def curve(line: Mapping[str, Any], gains: Iterable[tuple[int, float]]) -> np.ndarray:
    """Return the best speed after each trial, of the fastest schedule's; 0 until one ran."""
    best = np.zeros(line["trials"])
    for trial, seconds in gains:
        best[trial - 1 :] = line["optimum_seconds"] / seconds
    return best
