"""Compares two outputs of ``tilewright replay --format json`` seed by seed: what a change did.

    python -m experiments.search.paired BEFORE AFTER

Both are files of JSON lines, which may be compressed, of the same spaces, repeats and first seed.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.scheduler.replay.intervals import mean

TRIALS = (16, 64, 128, 256)
REACHED = 0.99  # share of the fastest schedule's speed that counts as reached


def main() -> None:
    before, after = (fractions(Path(path)) for path in sys.argv[1:])
    spaces = [name for name in before if name in after]
    for name in spaces:
        print(json.dumps({"space": name, **compared(before[name], after[name])}))
    first, second = (np.mean([known[name] for name in spaces], axis=0) for known in (before, after))
    reached = [
        round(float(np.mean([known[name][:, -1] >= REACHED for name in spaces])), 4)
        for known in (before, after)
    ]
    print(json.dumps({"spaces": len(spaces), **compared(first, second), "reach_99": reached}))


def fractions(path: Path) -> dict[str, np.ndarray]:
    """Return, by space, [repeats, ``TRIALS``], the best speed so far, of the fastest schedule's."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
    lines = [line for line in map(json.loads, text.splitlines()) if line["space"] is not None]
    return {line["space"]: _fractions(line) for line in lines}


def _fractions(line: Mapping[str, Any]) -> np.ndarray:
    best = [
        [min((s for i, s in gains if i <= trials), default=np.inf) for trials in TRIALS]
        for gains in line["gains"]
    ]
    return line["optimum_seconds"] / np.array(best)


def compared(before: np.ndarray, after: np.ndarray) -> dict[str, dict[str, float | None]]:
    """Return, after so many trials, both means, and the gain seed by seed with its 95 %
    interval."""
    found = {}
    for place, trials in enumerate(TRIALS):
        one, other = before[:, place], after[:, place]
        gain = mean(other - one)
        numbers = {"before": one.mean(), "after": other.mean(), "gain": gain.value}
        bounds = {"low": gain.low, "high": gain.high}
        found[str(trials)] = {
            name: None if value is None else round(float(value), 4)
            for name, value in (numbers | bounds).items()
        }
    return found


if __name__ == "__main__":
    main()
