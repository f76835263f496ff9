"""Measure how long a report of many trials takes, how large it is and when a browser paints it.

    python -m experiments.reports [--workloads 50] [--trials 100000] [--times 3] [--out FILE]

Latencies are made up, schedules are those of today's templates. Time is processor time and wall
time of the whole command. Writes ``results.json`` (three minutes).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.overheads.results import with_facts, write
from tests.browsing import chromium
from tests.scheduler.report.made_up import record
from tilewright.measure.database import Database
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Proposal, Run
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

HERE = Path(__file__).parent
ORIGINS = ("random", "child", "immigrant", "neighbour")
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def workloads(count: int) -> Iterator[Workload]:
    """Yield products, and among them some softmaxes and norms."""
    for n in range(count):
        if n % 4 in (1, 2):
            yield workload(("softmax", "layernorm")[n % 4 - 1], r=64, c=100 + n)
        else:
            yield workload("matmul", m=64 + 8 * n, n=256, k=512)


def trials(work: Workload, target: Target, count: int, run: str, seed: int) -> Iterator[Record]:
    """Yield trials of a workload, a ninth of which failed."""
    space, generator = space_for(work, target), np.random.default_rng(seed)
    rows = np.unique(space.sample(generator, 3 * count), axis=0)
    for n, row in enumerate(rows[generator.choice(len(rows), count, len(rows) < count)]):
        schedule = space.schedule(row)
        score = None if n % 9 == 8 else float(1e-4 * generator.lognormal(0, 0.7))
        proposal = Proposal(ORIGINS[n % len(ORIGINS)], n, float(generator.random()), 0.1)
        made = record(n, score, work, target=target, run=run, proposal=proposal,
                      measured={"schedule": schedule})  # fmt: skip
        yield replace(made, template_version=space.version_of(schedule))


def fill(db: Path, count: int, each: int) -> None:
    """Make a database of so many workloads with so many trials each."""
    target = detect_target("cpu")
    with Database(db) as database:
        for n, work in enumerate(workloads(count)):
            run = Run(f"run{n}", work, target, started_at=1.7e9, heartbeat=1.7e9 + each)
            database.add([run, *trials(work, target, each, run.key, n)])


def report(db: Path, out: Path) -> dict[str, float]:
    """Make a report; return its seconds by the clock and of processor time."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ("report", "--db", str(db), "--out", str(out))
    subprocess.run([sys.executable, "-m", "tilewright", *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(time.monotonic() - begun, 1), "processor_s": round(spent, 1)}


def first_paint(page: Path) -> float:
    """Return the seconds until Chromium shows something of a page."""
    with chromium() as browser:
        shown = browser.new_page()
        shown.goto(page.as_uri())
        found: Any = shown.evaluate(PAINT)
        return round(float(found) / 1e3, 2)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.reports")
    parser.add_argument("--workloads", type=int, default=50)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db, page = Path(folder) / "large.db", Path(folder) / "report.html"
        fill(db, options.workloads, options.trials // options.workloads)
        found: dict[str, Any] = {"reports": [report(db, page) for _ in range(options.times)]}
        found |= {"mb": round(page.stat().st_size / 1e6, 1), "first_paint_s": first_paint(page)}
    facts = {"workloads": options.workloads, "trials": options.trials}
    write(options.out, with_facts(found, **facts))
