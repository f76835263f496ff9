"""Compares attention on a GPU with torch's libraries and compiler; see README.md beside this file.

    python -m experiments.attention [--random 24] [--minutes 3] [--only PATTERN] [--out FILE]
        [--template NAME] [--without flex] [--spread 1] [--like FILE [--few 4]]

With ``--like``, a case tries the few schedules of each template that were the best of the most
similar cases of other results, and no others. Writes the results after every case. A further call
with the same file goes on with cases that are not in it. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from experiments.attention.cases import CASES, AttentionCase
from experiments.attention.rivals import rivals
from experiments.attention.similar import best_of_similar
from experiments.attention.tensors import drawn, exact
from experiments.attention.trying import Trial, serving
from experiments.gpu_matmul.timing import interleave
from experiments.resuming import remaining, resume, write
from tilewright.spaces.target import detect_target

FINALISTS = 2
"""Schedules of each template that are compared with rivals."""
KEPT = 12
"""Schedules in the results, with the times of trying them."""
KNOWN = 24
"""Schedules that were the best of cases before, which a case tries first."""


def measure(
    case: AttentionCase,
    known: Mapping[str, list[Any]],
    compiled: bool,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return the case's row of the results: rates in TFLOP/s, and ratios of times."""
    tensors = drawn(case, options.spread)
    target, wanted = detect_target("cuda"), exact(case, tensors)
    row: dict[str, Any] = {"templates": {}}
    calls: dict[str, Any] = {}
    schedules: dict[str, Any] = {}
    for served in serving(case, target):
        if options.template not in ("", served.name):
            continue
        trial = Trial.of(case, target, served, tensors, wanted)
        if options.like:
            trial.run_known(known.get(served.name, ()), options.few)
        else:
            trial.run(known.get(served.name, ()), options.random)
        tried = [{"us": 1e6 * trial.seconds[s], "values": s.values} for s in trial.best[:KEPT]]
        row["templates"][served.name] = {
            "outcomes": dict(trial.outcomes),
            "errors": trial.errors,
            "tried": tried,
        }
        for n, schedule in enumerate(trial.best[:FINALISTS]):
            calls[f"{served.name} {n}"] = trial.calls[schedule]
            schedules[f"{served.name} {n}"] = schedule.values
    others, row["unavailable"] = rivals(case, tensors, compiled)
    times = interleave(calls | others, rounds=30, seconds=0.5, heat=0.4)
    median = {name: statistics.median(found) for name, found in times.items()}
    row["tflops"] = {name: case.flops / t / 1e12 for name, t in median.items()}
    row["median_s"], row["least_s"] = median, {name: min(t) for name, t in times.items()}
    if calls:
        first = min(calls, key=median.__getitem__)
        row["best"], row["schedule"] = first, schedules[first]
        row["ratio"] = {name: median[name] / median[first] for name in others}
    return row


def main() -> int:
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    path, facts = options.out, {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    others = json.loads(options.like.read_text())["cases"] if options.like else {}
    results = resume(path, "experiments.attention", facts)
    for case in remaining(CASES, results, options.only, end):
        compiled = options.without != "flex" and end - time.monotonic() > 20
        known = best_of_similar(case, others) if others else best_known(results["cases"])
        row = measure(case, known, compiled, options)
        results["cases"][case.name] = row
        write(path, results)
        rates = sorted(row["tflops"].items(), key=lambda each: -each[1])
        words = ", ".join(f"{name} {rate:.1f}" for name, rate in rates)
        counts = {name: each["outcomes"] for name, each in row["templates"].items()}
        print(f"{case.name}: {words}; {counts}", flush=True)
    return 0


def best_known(cases: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the schedules of each template that were the best of cases before, the newest
    first."""
    found: dict[str, list[Any]] = {}
    for row in reversed(list(cases.values())):
        for name, each in row["templates"].items():
            own = found.setdefault(name, [])
            own += [t["values"] for t in each["tried"][:2] if t["values"] not in own]
    return {name: values[:KNOWN] for name, values in found.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.attention")
    parser.add_argument("--random", type=int, default=24, help="schedules at random a case")
    parser.add_argument("--minutes", type=float, default=3.0, help="for all of it")
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    parser.add_argument("--template", default="", help="the only one that is tried")
    parser.add_argument("--spread", type=float, default=1.0, help="queries' standard deviation")
    parser.add_argument("--without", choices=("flex",), help="a rival that is left out")
    parser.add_argument("--like", type=Path, help="results whose best schedules are tried alone")
    parser.add_argument("--few", type=int, default=4, help="so many of each template")
    parser.add_argument("--out", type=Path, default=Path("attention.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
