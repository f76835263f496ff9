"""Random programs, random schedules and long sums at the edges, on many cores; see README.md.

    python -m experiments.edges programs|schedules|sums [--target cpu|cuda:sm_90a] [--count N]
        [--seed 0] [--items FILE] [--jobs N] [--minutes 60] [--out FILE]

Writes the results every half minute. Ends with 1 if anything is wrong. ``--items`` judges the rows
of an earlier run's results once more.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from experiments.edges import programs, schedules, sums
from experiments.edges.working import worked_on
from experiments.resuming import resume, write

SETS = {"programs": programs, "schedules": schedules, "sums": sums}
"""Each has ``items`` of a target, at most so many, and what becomes of one, ``judged``."""
EVERY = 30.0
"""Seconds from one writing of results to the next."""


def main() -> int:
    options = _options()
    cores = sorted(os.sched_getaffinity(0))
    jobs = min(options.jobs or len(cores), len(cores))
    results = {"cores": jobs} | resume(options.out, "experiments.edges", {}, rows="rows")
    results |= {"rows": [], "items": 0, "kernels": 0, "wrong": 0, "slow": 0}
    start, written, own = time.monotonic(), 0.0, SETS[options.set]
    again = options.items and [row["item"] for row in json.loads(options.items.read_text())["rows"]]
    items = iter(again or own.items(options.target, options.count, options.seed))
    judged = partial(own.judged, options.target)
    for row in worked_on(judged, items, cores[:jobs], start + 60 * options.minutes):
        _take(results, row)
        results["seconds"] = round(time.monotonic() - start, 1)
        if time.monotonic() - written > EVERY:
            write(options.out, results)
            written = time.monotonic()
    write(options.out, results)
    counts = (f"{results[name]} {name}" for name in ("items", "kernels", "wrong", "slow"))
    print(f"{options.set} on {options.target}: {', '.join(counts)}, {results['seconds']} s")
    return int(results["wrong"] > 0)


def _take(results: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Count a row; keep it if it says more than that all is right."""
    results["items"] += 1
    results["kernels"] += row["kernels"]
    results["wrong"] += len(row["wrong"])
    results["slow"] += len(row.get("slow", ()))
    for template, right in row.get("templates", {}).items():
        templates = results.setdefault("templates", {})
        templates[template] = templates.get(template, 0) + right
    if row["wrong"] or row.keys() - {"item", "kernels", "wrong", "templates"}:
        results["rows"].append(dict(row))
    for text in row["wrong"]:
        print(f"WRONG {row['item']}: {text}", flush=True)


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m experiments.edges")
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--target", choices=("cpu", "cuda:sm_90a"), default="cpu")
    parser.add_argument("--count", type=int, default=2000, help="programs, or schedules")
    parser.add_argument("--seed", type=int, default=0, help="of the first items drawn")
    parser.add_argument("--items", type=Path, help="results whose rows are judged once more")
    parser.add_argument("--jobs", type=int, default=0, help="processes (default: one a core)")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("edges.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
