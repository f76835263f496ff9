"""Measure by how much a dashboard slows a run of 200 candidates a second.

    python -m experiments.dashboard [--rounds 8] [--seconds 20] [--out FILE]

Each candidate costs one of as many processes as there are cores the same fixed work instead of
compiling and timing; a process has the next one waiting when it ends. So all cores are busy, and
whatever the dashboard takes is taken from the run. Each round has four runs, the first another one
each time: without a dashboard, without one again, with one that nobody looks at, and with one that
somebody does. That one asks for news each second and for the page whenever that is new, as the
page's script does; what a browser takes to draw it is not counted. A run is measured from when the
dashboard made its second page: the first one loads what making it needs.

Beside the rates there is the processor time of the dashboard and of who asks it, as shares of all
cores, and that of the run for a candidate, which would show what a reader of its database costs it.
Chromium tells how long a result takes to the screen. Writes ``results.json`` (15 minutes).
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import numpy as np
import psutil

from experiments.overheads.results import with_facts, write
from tests.browsing import chromium, opened
from tilewright.measure.database import Database
from tilewright.scheduler.report.pages.live import JOB_HEADINGS
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.tuning.study import Study, Trial

HERE = Path(__file__).parent
WORKLOAD = "matmul m=512 n=512 k=512"
CORES = len(os.sched_getaffinity(0))
RATE = 200  # candidates a second
WAITING = 2  # candidates for each process, the one that it works on included
SECONDS_OF_WORK = CORES / RATE / 1.4  # a candidate's, the tuner's own work left out
ARMS = ("without", "without again", "unwatched", "watched")
WARM = 2.0  # seconds
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


class Run:
    """A run from an empty database, whose candidates the processes of a ``pool`` work on."""

    def __init__(self, study: Study, pool: ProcessPoolExecutor, units: int) -> None:
        self._study, self._pool, self._units = study, pool, units
        self._at: dict[Future[float], Trial] = {}
        self._processes = [psutil.Process(), *psutil.Process().children()]

    def until(self, is_over: Callable[[], bool]) -> int:
        """Go on until something is over; return the number of candidates."""
        count = 0
        while not is_over():
            for trial in self._study.ask_many(WAITING * CORES - len(self._at)):
                self._at[self._pool.submit(work, self._units)] = trial
            for done in wait(self._at, return_when=FIRST_COMPLETED).done:
                self._study.tell(self._at.pop(done), done.result())
                count += 1
        return count

    def seconds(self, seconds: float) -> int:
        """Go on for so many seconds; return the number of candidates."""
        end = time.monotonic() + seconds
        return self.until(lambda: time.monotonic() > end)

    @property
    def spent(self) -> float:
        """The processor time of the run until now."""
        return sum(map(spent, self._processes))


def spent(process: psutil.Process | None) -> float:
    """Return the processor time of a process until now."""
    return 0.0 if process is None else float(sum(process.cpu_times()[:2]))


@dataclass(frozen=True)
class Watch:
    """A dashboard, if there is one: its process, and the process that asks it as a browser does."""

    server: psutil.Process | None = None
    client: psutil.Process | None = None


@contextmanager
def watch(db: Path, arm: str, run: Run) -> Iterator[Watch]:
    """Serve the dashboard of an arm, as long as the block lasts, from its second page on."""
    if arm.startswith("without"):
        run.seconds(WARM)
        yield Watch()
        return
    with dashboard(db) as (server, address):
        run.seconds(WARM)
        urlopen(address).read()
        process = psutil.Process(server.pid)
        if arm == "unwatched":
            yield Watch(process)
            return
        browser = subprocess.Popen([sys.executable, "-c", LOOK, address])
        try:
            run.seconds(WARM)
            yield Watch(process, psutil.Process(browser.pid))
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


def one(
    folder: str, pool: ProcessPoolExecutor, units: int, seconds: float, arm: str
) -> dict[str, float]:
    """Return the rate of a run, its processor time for a candidate, and the shares of all cores
    that the dashboard and who asks it took."""
    db = Path(folder) / f"{time.monotonic_ns()}.db"
    with (
        Database(db) as database,
        Study(WORKLOAD, "cpu", database, search=lambda space: RandomSearch(space, seed=0)) as study,
    ):
        run = Run(study, pool, units)
        run.seconds(WARM)  # what is loaded once does not count
        with watch(db, arm, run) as watched:
            before, begun = _spent(run, watched), time.monotonic()
            count = run.seconds(seconds)
            lasted = time.monotonic() - begun
            own, server, client = (
                after - each for after, each in zip(_spent(run, watched), before, strict=True)
            )
    return {
        "rate": round(count / lasted, 1),
        "own_ms": round(1e3 * own / count, 3),
        "server": round(server / lasted / CORES, 4),
        "client": round(client / lasted / CORES, 4),
    }


def _spent(run: Run, watched: Watch) -> tuple[float, float, float]:
    return run.spent, spent(watched.server), spent(watched.client)


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


def beside_none(rounds: Sequence[Mapping[str, Mapping[str, float]]], arm: str) -> dict[str, Any]:
    """Return the medians of an arm: its rate and the run's own processor time for a candidate, over
    those without a dashboard, with intervals, and the shares of others."""

    def ratio(name: str) -> dict[str, Any]:
        ratios = [each[arm][name] / each["without"][name] for each in rounds]
        drawn = [median(rng.choice(ratios, len(ratios))) for _ in range(2000)]
        low, high = np.quantile(drawn, [0.025, 0.975])
        return {
            "median": round(median(ratios), 4),
            "interval": [round(float(low), 4), round(float(high), 4)],
        }

    rng = np.random.default_rng(0)
    shares = {
        name: round(median(each[arm][name] for each in rounds), 4) for name in ("server", "client")
    }
    return {"rate": ratio("rate"), "own_processor_time": ratio("own_ms"), **shares}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.dashboard")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    rounds = []
    units = units_of(SECONDS_OF_WORK)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(CORES, get_context("spawn")) as pool,
    ):
        wait([pool.submit(work, units) for _ in range(CORES)])  # all processes are there
        for number in range(options.rounds):
            order = [*ARMS[number % len(ARMS) :], *ARMS[: number % len(ARMS)]]
            runs = {arm: one(folder, pool, units, options.seconds, arm) for arm in order}
            rounds.append({arm: runs[arm] for arm in ARMS})
            print(json.dumps(rounds[-1]), file=sys.stderr)
        shown = seconds_to_screen(folder)
    found = {
        **{arm: beside_none(rounds, arm) for arm in ARMS[1:]},
        "rate": median(each["without"]["rate"] for each in rounds),
        "seconds_to_screen": {"median": median(shown), "most": max(shown)},
        "rounds": rounds,
    }
    write(options.out, with_facts(found, rounds=options.rounds, seconds=options.seconds))
