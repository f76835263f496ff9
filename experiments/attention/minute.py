"""Times winners of searches of one and of ten minutes in turns with the best known kernel.

    python -m experiments.attention.minute RESULTS --only PATTERN [--seconds 60 600] [--out FILE]

Each case whose name matches is tuned from nothing until each of the seconds has passed, then the
winners of then and the kernel that was the best in ``RESULTS``, of ``experiments.attention``, are
judged and timed. What was written can be RESULTS of ``experiments.attention.flash3``. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from experiments.attention.cases import CASES, AttentionCase
from experiments.attention.side_by_side import best_call, call_of
from experiments.gpu_matmul.timing import interleave
from experiments.resuming import remaining, resume, write
from experiments.search.budgets import after, told


def measure(case: AttentionCase, known: dict[str, Any], seconds: Sequence[float]) -> dict[str, Any]:
    """Return the medians of all kernels, and how the search went."""
    calls: dict[str, Callable[[], None]] = {"known": best_call(case, known)}
    tried = {"known": (known["best"], known["schedule"])}
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        for each, result in after(case.workload, Path(folder, "tuning.db"), seconds):
            assert result.best is not None, f"nothing was right: {dict(result.failures)}"
            schedule, name = result.best.schedule, f"{each:g} s"
            calls[name] = call_of(case, schedule.template, schedule.values)
            tried[name] = (f"{schedule.template} {name}", schedule.values)
            runs[name] = told(result)
    times = interleave(calls, rounds=60, seconds=1.0)
    median = {name: statistics.median(found) for name, found in times.items()}
    best, schedule_of_best = tried[min(median, key=median.__getitem__)]
    return {
        "best": best,
        "schedule": schedule_of_best,
        "median_s": median,
        "ratio": {name: median["known"] / median[name] for name in runs},
        "runs": runs,
        "known": known["schedule"],
    }


def main() -> int:
    options = _options()
    known = json.loads(options.results.read_text())["cases"]
    facts = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    results = resume(options.out, "experiments.attention.minute", facts)
    for case in remaining(CASES, results, options.only):
        row = measure(case, known[case.name], options.seconds)
        results["cases"][case.name] = row
        write(options.out, results)
        words = ", ".join(f"{name} {1e6 * t:.1f} us" for name, t in row["median_s"].items())
        print(f"{case.name}: {words}", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.attention.minute")
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", type=re.compile, required=True, help="cases whose names match")
    parser.add_argument("--seconds", type=float, nargs="+", default=[60.0, 600.0])
    parser.add_argument("--out", type=Path, default=Path("minute.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
