"""Compare the task scheduler with equal shares that have twice the time, and write JSON.

python -m experiments.suites [--suite bert-base] [--seconds 600] [--seeds 0 1 2] [--threads 1]
                             [--side-by-side [--cores 2]]
"""

from __future__ import annotations

import argparse
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from experiments.suites.comparison import CONTENDERS, compare
from experiments.suites.cpu_sets import Processes, everywhere, side_by_side
from experiments.suites.report import Report, tell
from tilewright.scheduler.suites.suite import read_suite


def main() -> None:
    options = _options()
    suite = read_suite(options.suite)
    cores = options.cores or options.threads
    names = ("suite", "seconds", "threads", "side_by_side")
    facts = {name: getattr(options, name) for name in names}
    report = Report(options.out, facts | ({"cores": cores} if options.side_by_side else {}))
    together = len(options.seeds) if options.side_by_side else 1
    runs = together * len(CONTENDERS)
    places = side_by_side(runs, cores) if options.side_by_side else everywhere()

    def one(seed: int) -> None:
        """Run a seed, whose failure leaves the others as they are."""
        try:
            one_compared(seed)
        except Exception:
            tell(f"seed {seed} failed:\n{traceback.format_exc()}")

    with Processes(places) as pool, ThreadPoolExecutor(together) as threads:
        one_compared = partial(
            compare,
            pool,
            suite,
            options.threads,
            options.seconds,
            side_by_side=options.side_by_side,
            ended=report.ended,
            compared=report.compared,
        )
        list(threads.map(one, options.seeds))


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
