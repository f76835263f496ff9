"""Compare the task scheduler with equal shares that have twice the time, and write JSON.

python -m experiments.suites [--suite bert-base] [--seconds 600] [--seeds 0 1 2] [--threads 1]
                             [--side-by-side [--cores 2]]
"""

from __future__ import annotations

import argparse
import datetime
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from experiments.suites.comparison import CONTENDERS, compare
from experiments.suites.places import everywhere, processes, side_by_side
from scheduler.suites.suite import read_suite


def main() -> None:
    options = _options()
    suite = read_suite(options.suite)
    cores = options.cores or options.threads
    report: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "suite": options.suite,
        "seconds": options.seconds,
        "threads": options.threads,
        "side_by_side": options.side_by_side,
        "seeds": [],
        "runs": {},
    }
    if options.side_by_side:
        report["cores"] = cores
    together = len(options.seeds) if options.side_by_side else 1
    runs = together * len(CONTENDERS)
    places = side_by_side(runs, cores) if options.side_by_side else everywhere()
    lock = threading.Lock()

    def ended(seed: int, name: str, run: dict[str, Any]) -> None:
        """Keeps the run until its seed has ended."""
        with lock:
            report["runs"][f"{seed} {name}"] = run
            keep()
        print(f"seed {seed} {name}: {run['value_s']} s, {run['trials']} trials", flush=True)

    def keep() -> None:
        options.out.write_text(json.dumps(report, indent=1) + "\n")

    with processes(places) as pool, ThreadPoolExecutor(together) as threads:
        compared = partial(
            compare,
            pool,
            suite,
            options.threads,
            options.seconds,
            side_by_side=options.side_by_side,
            ended=ended,
        )
        for found in threads.map(compared, options.seeds):
            with lock:
                report["seeds"].append(found)
                for name in found["runs"]:
                    del report["runs"][f"{found['seed']} {name}"]
                keep()
            print(
                f"seed {found['seed']}: {found['ratios']}, +- {found['standard_errors']}",
                flush=True,
            )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.suites")
    parser.add_argument("--suite", default="bert-base", help="a shipped suite, or a file")
    parser.add_argument("--seconds", type=float, default=600.0, help="for the task scheduler")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--side-by-side", action="store_true", help="all runs at once, each on cores of its own"
    )
    parser.add_argument(
        "--cores", type=int, help="of each run side by side, if not as many as threads"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
