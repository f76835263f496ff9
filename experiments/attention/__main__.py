"""Compares attention on a GPU with torch's libraries and compiler; see README.md beside this file.

    python -m experiments.attention [--template chained_hopper] [--random 24] [--minutes 3]
        [--only PATTERN] [--out FILE]

Writes the results after every case. A further call with the same file goes on with cases that are
not in it. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from experiments.attention.cases import CASES, AttentionCase
from experiments.attention.rivals import exact, rivals
from experiments.attention.trying import Trial
from experiments.gpu_matmul.timing import interleave
from spaces.target import detect_target

FINALISTS = 3
KEPT = 12
"""Schedules in the results, with the times of trying them."""


def measure(case: AttentionCase, template: str, count: int, compiled: bool) -> dict[str, Any]:
    """The case's row of the results: rates in TFLOP/s, and ratios of times."""
    torch.manual_seed(0)
    tensors = {
        name: torch.randn(shape, device="cuda", dtype=getattr(torch, case.dtype))
        for name, shape in case.shapes.items()
    }
    trial = Trial.of(case, detect_target("cuda"), template, tensors, exact(case, tensors))
    trial.run(count)
    row: dict[str, Any] = {"outcomes": dict(trial.outcomes), "errors": trial.errors}
    calls: dict[str, Any] = {f"tilewright {n}": trial.calls[s] for n, s in enumerate(trial.best)}
    calls = dict(list(calls.items())[:FINALISTS])
    row["tried"] = [
        {"us": 1e6 * trial.seconds[s], "schedule": s.to_json()} for s in trial.best[:KEPT]
    ]
    others, row["unavailable"] = rivals(case, tensors, compiled)
    times = interleave(calls | others, rounds=30, seconds=0.5, heat=0.4)
    median = {name: statistics.median(found) for name, found in times.items()}
    ours = [name for name in median if name.startswith("tilewright")]
    first = min(ours, key=median.__getitem__) if ours else None
    row["tflops"] = {name: case.flops / t / 1e12 for name, t in median.items()}
    row["median_s"], row["least_s"] = median, {name: min(t) for name, t in times.items()}
    if first:
        row["schedule"] = trial.best[ours.index(first)].to_json()
        row["ratio"] = {name: median[name] / median[first] for name in others}
    return row


def main() -> int:
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    path: Path = options.out
    path.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"cases": {}}
    if path.exists():
        results = json.loads(path.read_text())
    results |= {"date": datetime.now(UTC).date().isoformat(), "torch": torch.__version__}
    results["device"] = torch.cuda.get_device_name()
    results["command"] = "python -m experiments.attention " + " ".join(sys.argv[1:])
    for case in CASES:
        known = case.name in results["cases"] or not options.only.search(case.name)
        if known or time.monotonic() > end:
            continue
        compiled = end - time.monotonic() > 20
        count = options.random if case.length == 4096 else options.random // 4
        row = measure(case, options.template, count, compiled)
        results["cases"][case.name] = row
        path.write_text(json.dumps(results, indent=1) + "\n")
        rates = sorted(row["tflops"].items(), key=lambda each: -each[1])
        words = ", ".join(f"{name} {rate:.0f}" for name, rate in rates)
        print(f"{case.name}: {words}; {row['outcomes']}", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.attention")
    parser.add_argument("--template", default="chained_hopper", help="whose space is tried")
    parser.add_argument("--random", type=int, default=24, help="schedules at random a case")
    parser.add_argument("--minutes", type=float, default=3.0, help="for all of it")
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    parser.add_argument("--out", type=Path, default=Path("attention.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
