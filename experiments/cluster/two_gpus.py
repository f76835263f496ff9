"""A suite on one GPU and on two of the same host, both by Ray: trials a second, and what is found.

    python -m experiments.cluster.two_gpus [--suite llama-3-8b-decode] [--seconds 60] [--out FILE]

See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.suites.winners import Runs, described, latencies_of_winners, weighted_sums
from measure.cluster.driving.plan import Needs
from measure.cluster.executor import RayExecutor
from measure.database import Database
from scheduler.suites.suite import Suite, read_suite
from scheduler.suites.tuner import SuiteTuner
from spaces.target import detect_target

TRIALS = 1_000_000  # more than there is time for
GPUS = ("0", "1")


def run(options: argparse.Namespace) -> None:
    suite = read_suite(options.suite)
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "suite": options.suite,
        "cpus": len(os.sched_getaffinity(0)),
        "runs": {},
    }
    for count in (1, 2):
        found = seeing(GPUS[:count], tuned, suite, options.target, options.seconds)
        report["runs"][str(count)] = found
        options.out.write_text(json.dumps(report, indent=1) + "\n")
        print(f"{count}: {found['trials_per_s']:.2f} trials/s", flush=True)
    report |= compared(suite, options.target, report["runs"])
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print({key: report[key] for key in ("trials_ratio", "weighted_sums_s", "second_over_first")})


def seeing(gpus: Sequence[str], action: Callable[..., Any], *arguments: Any) -> Any:
    """What ``action`` returns in a process that sees only these GPUs."""
    with ProcessPoolExecutor(1, get_context("spawn"), _see, (gpus,)) as pool:
        return pool.submit(action, *arguments).result()


def _see(gpus: Sequence[str]) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)


def tuned(suite: Suite, kind: str, seconds: float) -> dict[str, Any]:
    """One run from an empty database, on all GPUs that this process sees."""
    with (
        closing(RayExecutor(needs=Needs((kind,)))) as executor,
        tempfile.TemporaryDirectory() as folder,
        Database(f"{folder}/tuning.db") as database,
    ):
        [target] = executor.targets()
        result = SuiteTuner(suite, target, database, executor).run(TRIALS, seconds)
        devices = [worker.device for worker in executor.status().workers if worker.role == "run"]
    rate = result.trials / result.seconds
    return {"devices": devices, "trials_per_s": rate, **described(result)}


def compared(suite: Suite, kind: str, runs: Runs) -> dict[str, Any]:
    """The winners of both runs timed in turns, on the one GPU and then on the other."""
    first, second = (seeing([gpu], timed, suite, kind, runs) for gpu in GPUS)
    both = zip(first, second, strict=True)
    return {
        "trials_ratio": runs["2"]["trials_per_s"] / runs["1"]["trials_per_s"],
        "latencies_s": {"first": first, "second": second},
        "weighted_sums_s": weighted_sums(suite, runs, first),
        "second_over_first": [
            other[name] / one[name] for one, other in both for name in one if name in other
        ],
    }


def timed(suite: Suite, kind: str, runs: Runs) -> list[dict[str, float]]:
    """On the first GPU that this process sees."""
    return latencies_of_winners(suite, detect_target(kind), runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.cluster.two_gpus")
    parser.add_argument("--suite", default="llama-3-8b-decode", help="a shipped one, or a file")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tuning, each time")
    parser.add_argument("--target", default="cuda", help="cuda, or cpu to try this without a GPU")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("two_gpus.json"))
    run(parser.parse_args())


if __name__ == "__main__":
    main()
