"""Measure by how much a dashboard that somebody looks at slows a run of 200 candidates a second.

    python -m experiments.dashboard [--rounds 8] [--seconds 12] [--out FILE]

Each candidate costs two processes the same fixed work instead of compiling and timing, so that all
cores are busy and about 200 candidates a second are recorded: whatever the dashboard takes is taken
from the run. Each round has a run with and one without, in turns of both orders. A process asks the
dashboard for its news each second and for the page whenever that is new, as the page's script does;
what a browser takes to draw it is not counted. Chromium tells how long a result takes to the
screen. Writes ``results.json`` (four minutes).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import numpy as np
import psutil

from experiments.overheads.results import with_facts, write
from tests.browsing import chromium, opened
from tilewright.measure.database import Database
from tilewright.scheduler.report.live import JOB_HEADINGS
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.tuning.study import Study

HERE = Path(__file__).parent
WORKLOAD = "matmul m=512 n=512 k=512"
CORES = len(os.sched_getaffinity(0))
RATE = 200  # candidates a second
BATCH = 2 * CORES
SECONDS_OF_WORK = CORES / RATE / 1.4  # a candidate's, the tuner's own work left out
ATTEMPTS = JOB_HEADINGS.index("attempts")
LOOK = """
import json, sys, time
from urllib.request import urlopen
address, known = sys.argv[1], ""
news = address.replace("/?", "/news?")
while True:
    state = json.load(urlopen(news))["state"]
    if state != known:
        urlopen(address).read()
        known = state
    time.sleep(1.0)
"""


def work(units: int) -> float:
    """Return the seconds that a fixed piece of work took."""
    begun = time.perf_counter()
    text = b"x" * 1024
    for _ in range(units):
        text = hashlib.sha256(text).digest() * 32
    return time.perf_counter() - begun


def units_of(seconds: float) -> int:
    """Return how much work takes so long here."""
    return max(1, round(seconds / min(work(2000) for _ in range(5)) * 2000))


def rate_of_run(study: Study, pool: Pool, units: int, seconds: float) -> float:
    """Return the candidates a second of a run of so many seconds."""
    begun, count = time.monotonic(), 0
    while time.monotonic() < begun + seconds:
        trials = study.ask_many(BATCH)
        for trial, latency in zip(trials, pool.map(work, [units] * len(trials), 1), strict=True):
            study.tell(trial, latency)
        count += len(trials)
    return count / (time.monotonic() - begun)


@contextmanager
def watched_dashboard(db: Path) -> Iterator[psutil.Process]:
    """Serve a dashboard that somebody looks at, as long as the block lasts."""
    with dashboard(db) as (server, address):
        browser = subprocess.Popen([sys.executable, "-c", LOOK, address])
        try:
            yield psutil.Process(server.pid)
        finally:
            browser.kill()
            browser.wait()


@contextmanager
def dashboard(db: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a dashboard as long as the block lasts; its process and its address."""
    command = [sys.executable, "-m", "tilewright", "dashboard", "--db", str(db)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().split()[1]
    urlopen(address).read()
    try:
        yield server, address
    finally:
        server.kill()
        server.wait()


def one(folder: str, pool: Pool, units: int, seconds: float, watched: bool) -> dict[str, Any]:
    """Return the rate of a run from an empty database, and the dashboard's share of a core."""
    db = Path(folder) / f"{time.monotonic_ns()}.db"
    with (
        Database(db) as database,
        Study(WORKLOAD, "cpu", database, search=lambda space: RandomSearch(space, seed=0)) as study,
    ):
        rate_of_run(study, pool, units, 1.0)  # what is loaded once does not count
        if not watched:
            return {"rate": rate_of_run(study, pool, units, seconds)}
        with watched_dashboard(db) as process:
            before = sum(process.cpu_times()[:2])
            rate = rate_of_run(study, pool, units, seconds)
            return {"rate": rate, "core": (sum(process.cpu_times()[:2]) - before) / seconds}


def seconds_to_screen(folder: str, times: int = 12) -> list[float]:
    """Return the seconds from recording a result to its place among the jobs on the screen."""
    db = Path(folder) / "screen.db"
    taken = []
    with (
        Database(db) as database,
        Study(WORKLOAD, "cpu", database, search=lambda space: RandomSearch(space, seed=0)) as study,
        chromium() as browser,
    ):
        study.tell(study.ask(), 1e-3)
        with dashboard(db) as (_, address), opened(browser, address) as visit:
            for count in range(2, 2 + times):
                time.sleep(0.37)  # at another moment of the page's second each time
                begun = time.monotonic()
                study.tell(study.ask(), 1e-3)
                cell = visit.page.locator("#jobs tbody td").nth(ATTEMPTS)
                cell.filter(has_text=f"{count}").wait_for()
                taken.append(round(time.monotonic() - begun, 2))
    return taken


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.dashboard")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    rounds = []
    units = units_of(SECONDS_OF_WORK)
    with tempfile.TemporaryDirectory() as folder, get_context("spawn").Pool(CORES) as pool:
        for number in range(options.rounds):
            order = (False, True) if number % 2 else (True, False)
            runs = {seen: one(folder, pool, units, options.seconds, seen) for seen in order}
            rounds.append(
                {
                    "without": round(runs[False]["rate"], 1),
                    "with": round(runs[True]["rate"], 1),
                    "dashboard_of_a_core": round(runs[True]["core"], 4),
                }
            )
            print(json.dumps(rounds[-1]), file=sys.stderr)
        shown = seconds_to_screen(folder)
    ratios = [each["with"] / each["without"] for each in rounds]
    rng = np.random.default_rng(0)
    drawn = [median(rng.choice(ratios, len(ratios))) for _ in range(2000)]
    found = {
        "median_ratio": round(median(ratios), 4),
        "interval": [round(float(end), 4) for end in np.quantile(drawn, [0.025, 0.975])],
        "dashboard_of_a_core": median(each["dashboard_of_a_core"] for each in rounds),
        "seconds_to_screen": {"median": median(shown), "most": max(shown)},
        "rounds": rounds,
    }
    write(options.out, with_facts(found, rounds=options.rounds, seconds=options.seconds))
