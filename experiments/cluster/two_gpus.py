"""A suite on one GPU and on two of the same host, both by Ray: trials a second, and what is found.

    python -m experiments.cluster.two_gpus [--suite llama-3-8b] [--section decode] [--seconds 60]
        [--out FILE]
                                           [--two-first]
    python -m experiments.cluster.two_gpus --simulated [--seconds 60]

See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.suites.winners import Runs, compared_winners, described, medians, weighted_sums
from tests.measure.cluster.nodes import CODE, cluster
from tilewright.measure.cluster.driver.plan import Needs
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.database import Database
from tilewright.scheduler.suites.suite import Suite, read_suite
from tilewright.scheduler.tuning.events import SuiteProgress, SuiteResult
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.target import detect_target

HERE = Path(__file__).parent
TRIALS = 1_000_000  # more than there is time for
GPUS = ("0", "1")
COMPARISONS = 3  # comparisons of the winners on each GPU; the median counts
LOOK_SECONDS = 0.05  # how often it is noted what each worker does
CORES = 20  # cores of the host of simulated GPUs


def run(options: argparse.Namespace) -> None:
    suite = read_suite(options.suite)
    if options.section:
        suite = suite.section(options.section)
    if options.simulated:
        for count in _counts(options):
            with simulated(count) as executor:
                found = tuned(suite, executor, options.seconds)
            print(
                f"{count}: {found['searched_per_s']:.2f} trials/s while searching; {found['time']}"
            )
        return
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "suite": suite.title,
        "cpus": len(os.sched_getaffinity(0)),
        "runs": {},
    }
    for count in _counts(options):
        found = seeing(GPUS[:count], tuned_here, suite, options.target, options.seconds)
        report["runs"][str(count)] = found
        options.out.write_text(json.dumps(report, indent=1) + "\n")
        rates = (
            f"{found['trials_per_s']:.2f} trials/s, {found['searched_per_s']:.2f} while searching"
        )
        print(f"{count}: {rates}; {found['devices']}, {found['drifting']} drifting", flush=True)
        print(f"   {found['time']}", flush=True)
    report |= compared(suite, options.target, report["runs"])
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    shown = ("trials_ratio", "searched_ratio", "weighted_sums_s", "second_over_first")
    print({key: report[key] for key in shown})


def _counts(options: argparse.Namespace) -> tuple[int, ...]:
    """Return the numbers of GPUs, in the order of the runs."""
    return (2, 1) if options.two_first else (1, 2)


def seeing(gpus: Sequence[str], action: Callable[..., Any], *arguments: Any) -> Any:
    """Return what ``action`` returns in a process that sees only these GPUs."""
    with ProcessPoolExecutor(1, get_context("spawn"), _see, (gpus,)) as pool:
        return pool.submit(action, *arguments).result()


def _see(gpus: Sequence[str]) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)


@contextmanager
def simulated(count: int) -> Iterator[RayExecutor]:
    """Return ``count`` made-up GPUs of a host that has cores for all compilers, see
    ``devices.py``."""
    code = (*CODE, str(HERE / "devices.py"))
    with cluster(cpus=CORES, num_gpus=count) as made:
        needs = Needs(("cuda",))
        with closing(
            RayExecutor(made.address, needs, host_services="devices:Paced", code=code)
        ) as executor:
            yield executor


def tuned_here(suite: Suite, kind: str, seconds: float) -> dict[str, Any]:
    """Return one run on all GPUs that this process sees."""
    with closing(RayExecutor(needs=Needs((kind,)))) as executor:
        return tuned(suite, executor, seconds)


def tuned(suite: Suite, executor: RayExecutor, seconds: float) -> dict[str, Any]:
    """Return one run from an empty database."""
    with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/tuning.db") as database:
        [target] = executor.targets()
        noting = Noting(executor)
        noting.start()
        result = Tuner(suite, target, database, executor).run(
            TRIALS, seconds, on_progress=noting.note
        )
        running = [worker for worker in executor.status().workers if worker.role == "run"]
        drifting = _drifting(database)
    return {
        "devices": {worker.device: worker.done for worker in running},
        "trials_per_s": result.trials / result.seconds,
        "searched_per_s": noting.rate,
        "remarks": noting.remarks,
        "drifting": drifting,
        "time": {**noting.shares(), **_shares_of_driver(result)},
        **described(result),
    }


def _shares_of_driver(result: SuiteResult) -> dict[str, float]:
    """Return the share of the run that the driver's thread spent on each activity."""
    spent = {
        "search": result.search_seconds,
        "lowering": result.lowering_seconds,
        "database": result.database_seconds,
        "waiting": result.waiting_seconds,
        "idle": result.idle_seconds,
    }
    return {f"driver {name}": round(s / result.seconds, 3) for name, s in spent.items()}


class Noting(threading.Thread):
    """Looks what each worker does, prints what is said of it, and takes the time of the search."""

    def __init__(self, executor: RayExecutor) -> None:
        super().__init__(daemon=True)
        self._executor = executor
        self._states: Counter[str] = Counter()
        self._searches = False
        self._first: tuple[int, float] | None = None
        self._last = (0, 0.0)
        self.remarks: list[tuple[float, str]] = []

    def note(self, progress: SuiteProgress) -> None:
        self._searches = progress.phase == "search" and progress.trials > 0
        if progress.phase == "search" and progress.latest is not None:
            self._last = (progress.trials, progress.elapsed)
            self._first = self._first or self._last

    def run(self) -> None:
        """Run until the process ends."""
        while True:
            self._look()
            time.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        workers = self._executor.status().workers
        if self._searches:
            self._states.update(f"{worker.role} {worker.state}" for worker in workers)
        for worker in workers:
            remark = f"{worker.role} {worker.device} {worker.state}: {worker.why}"
            if worker.why and remark not in (known for _, known in self.remarks):
                self.remarks.append((self._last[1], remark))
                print(f"{self._last[1]:5.1f} s  {remark}", flush=True)

    def shares(self) -> dict[str, float]:
        """Return the share of the search that workers of each role spent in each state."""
        roles = Counter[str]()
        for state, count in self._states.items():
            roles[state.split()[0]] += count
        states = sorted(self._states.items())
        return {state: round(count / roles[state.split()[0]], 3) for state, count in states}

    @property
    def rate(self) -> float:
        """Trials a second from the first one of the search to the last."""
        trials, seconds = self._first or (0, 0.0)
        return (self._last[0] - trials) / max(1e-9, self._last[1] - seconds)


def _drifting(database: Database) -> int:
    """Return the measurements that bear a note of a slow worker."""
    return sum("drift" in record.measurement.info for record in database.records())


def compared(suite: Suite, kind: str, runs: Runs) -> dict[str, Any]:
    """Return the winners of both runs timed in turns, on each of the GPUs at the same time."""
    with ThreadPoolExecutor(len(GPUS)) as threads:
        first, second = threads.map(lambda gpu: seeing([gpu], timed, suite, kind, runs), GPUS)
    both = zip(first, second, strict=True)
    return {
        "trials_ratio": runs["2"]["trials_per_s"] / runs["1"]["trials_per_s"],
        "searched_ratio": runs["2"]["searched_per_s"] / runs["1"]["searched_per_s"],
        "latencies_s": {"first": first, "second": second},
        "weighted_sums_s": weighted_sums(suite, runs, first),
        "second_over_first": [
            other[name] / one[name] for one, other in both for name in one if name in other
        ],
    }


def timed(suite: Suite, kind: str, runs: Runs) -> list[dict[str, float]]:
    """Time calls on the first GPU that this process sees."""
    return medians(compared_winners(suite, detect_target(kind), runs, COMPARISONS))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.cluster.two_gpus")
    parser.add_argument("--suite", default="llama-3-8b", help="a shipped one, or a file")
    parser.add_argument("--section", help="of the suite; all of it if nothing is said")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tuning, each time")
    parser.add_argument("--target", default="cuda", help="cuda, or cpu to try this without a GPU")
    parser.add_argument("--two-first", action="store_true", help="and then one")
    parser.add_argument("--simulated", action="store_true", help="made-up GPUs, without a GPU")
    parser.add_argument("--out", type=Path, default=HERE / "two_gpus.json")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
