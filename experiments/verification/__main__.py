"""Random schedules of every template on the GPU here, held to float64; see README.md beside this.

    python -m experiments.verification [--schedules 200] [--minutes 2.5] [--at-once 4]
        [--template NAME ...] [--only PATTERN] [--out FILE]

    python -m experiments.verification --edges [--target cpu|cuda|cuda:sm_90a] ...

Writes the results after every group of schedules, and a table beside them. A further call with the
same file draws others, until every template has had so many. Ends with 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from experiments.resuming import resume, write
from experiments.verification import edges
from experiments.verification.cases import CASES
from experiments.verification.judging import judge
from experiments.verification.outcomes import table, totals
from experiments.verification.plan import Group, Plan
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.timing import TimingProtocol
from tilewright.scheduler.verification import Verdict
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import detect_target

ONCE = TimingProtocol(budget=0.0, samples=1, contender_samples=1, sample_seconds=1e-4)
"""Schedules are judged here, and hardly timed."""


def main() -> int:
    options = _options()
    if options.edges:
        return edges.run(options)
    try:
        target = detect_target("cuda")
    except InputError as error:
        print(f"verification: {error}", file=sys.stderr)
        return 2
    assert isinstance(target, CudaTarget)
    results = resume(options.out, "experiments.verification", {"target": target.to_json()})
    cases = {name: text for name, text in CASES.items() if options.only.search(name)}
    plan = Plan(cases, target, options.schedules, results["cases"], options.template)
    seed, start = results.setdefault("groups", 0), time.monotonic()
    before = results.get("seconds", 0.0)

    def take(group: Group, verdicts: Sequence[Verdict]) -> None:
        plan.take(group, verdicts)
        results["groups"] += 1
        results["seconds"] = round(before + time.monotonic() - start, 1)
        results["templates"] = totals(results["cases"])
        write(options.out, results, table)

    builder = NvrtcBuilder(target, jobs=len(os.sched_getaffinity(0)))
    with ExitStack() as opened:
        opened.enter_context(closing(builder))
        runners = [
            opened.enter_context(closing(CudaRunner(target, protocol=ONCE)))
            for _ in range(options.at_once)
        ]
        judge(plan.groups(seed), builder, runners, 60 * options.minutes, take)
    print(table(results))
    return int(any("wrong" in counts for counts in totals(results["cases"]).values()))


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m experiments.verification")
    parser.add_argument(
        "--edges", action="store_true", help="edge inputs alone, and planted faults"
    )
    parser.add_argument("--target", default="cuda", help="of --edges; a named GPU is emulated")
    parser.add_argument("--schedules", type=int, default=200, help="of each template")
    parser.add_argument("--minutes", type=float, default=2.5, help="for all of it")
    parser.add_argument("--at-once", type=int, default=4, help="groups, each with its own runner")
    parser.add_argument("--template", nargs="+", default=(), help="these alone")
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    parser.add_argument("--out", type=Path, default=Path("verification.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
