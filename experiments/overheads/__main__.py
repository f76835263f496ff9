"""Measures the time that the tuner and its database take for themselves; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from experiments.overheads.results import write
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.defaults import local_executor
from tilewright.scheduler.query import query
from tilewright.scheduler.tuning.tuner import Tuner, tune
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.workload import Workload

OUT = Path(__file__).with_name("results.json")
BUDGETS = (("m=512 n=512 k=512", 5), ("m=1 n=4096 k=4096", 8), ("m=2039 n=2039 k=2039", 15))


def own_work(trials: int) -> dict[str, Any]:
    """Return the shares of a run's wall time at 512 cubed that are the tuner's own, waited for or
    not; ``own_cpu`` is the CPU time of its thread, which others on the machine do not lengthen."""
    target = detect_cpu(1)
    product = workload("matmul", m=512, n=512, k=512)
    with (
        _database() as location,
        Database(location) as database,
        closing(local_executor(target)) as executor,
    ):
        tuner, started = Tuner(product, target, database, executor), time.thread_time()
        result = tuner.run(trials, seconds=600)
        worked = time.thread_time() - started
    total = result.seconds
    return {
        "trials": result.trials,
        "seconds": round(total, 2),
        "own": round(result.own_seconds / total, 4),
        "own_cpu": round(worked / total, 4),
        "idle": round(result.overhead, 4),
        "search": round(result.search_seconds / total, 4),
        "lowering": round(result.lowering_seconds / total, 4),
        "database": round(result.database_seconds / total, 4),
    }


def budgets_kept() -> list[dict[str, Any]]:
    """Wall time that runs take beside the seconds they are allowed."""
    kept = []
    for sizes, seconds in BUDGETS:
        with _database() as location:
            start = time.monotonic()
            result = tune(f"matmul {sizes}", detect_cpu(1), location, 10_000, seconds)
            taken = time.monotonic() - start
        kept.append(
            {"sizes": sizes, "allowed": seconds, "taken": round(taken, 2), "trials": result.trials}
        )
    return kept


def large_database(pairs: int, repeats: int) -> dict[str, Any]:
    """Return the seconds of what users ask of a database of so many workloads: medians."""
    target = detect_cpu(1)
    unknown = workload("matmul", m=333, n=777, k=555)
    records = [_record(product) for product in _products(pairs)]
    with _database() as location:
        with Database(location) as database:
            start = time.monotonic()
            database.record_all(records)
            filled = time.monotonic() - start
        with Database(location) as database:
            listed = _median(database.summaries, repeats)
            nearest = _median(lambda: list(database.nearest(unknown, target)), repeats)
        asked = _median(lambda: query(unknown, target, location), repeats)
        command = [sys.executable, "-m", "tilewright", "list", "--db", str(location)]
        shown = _median(lambda: subprocess.run(command, check=True, capture_output=True), 3)
    return {
        "workloads": pairs,
        "record_all": round(filled, 3),
        "summaries": round(listed, 4),
        "nearest": round(nearest, 4),
        "query_unknown": round(asked, 4),
        "tilewright_list": round(shown, 3),
    }


def _median(action: Callable[[], Any], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _products(count: int) -> Iterator[Workload]:
    generator = np.random.default_rng(0)
    sizes = {tuple(int(s) for s in generator.integers(1, 8192, 3)) for _ in range(2 * count)}
    for m, n, k in sorted(sizes)[:count]:
        yield workload("matmul", m=m, n=n, k=k)


def _record(product: Workload) -> Record:
    """Return a made-up record of a schedule of ``product``."""
    target = detect_cpu(1)
    space = space_for(product, target)
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    seconds = product.flops / 50e9
    samples = (seconds, seconds, seconds)
    measurement = Measurement(schedule, Status.OK, seconds, samples, clock="cpu", started_at=1.0)
    return Record(product, target, space.version_of(schedule), measurement)


@contextmanager
def _database() -> Iterator[Path]:
    """Give the path of a database that does not exist yet."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "tuning.db")


def main() -> None:
    """Run the command."""
    options = _options()
    parts: dict[str, Callable[[], Any]] = {
        "large_database": lambda: large_database(options.pairs, options.repeats),
        "own_work": lambda: [own_work(options.trials) for _ in range(3)],
        "budgets": budgets_kept,
    }
    result = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.only or parts:
        result[name] = {
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            "target": detect_cpu(1).summary,
            "load_before": os.getloadavg()[0],
            "found": parts[name](),
        }
    write(options.out, result)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=("large_database", "own_work", "budgets"))
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--pairs", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
