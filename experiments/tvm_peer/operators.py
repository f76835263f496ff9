"""Tune convolutions and softmax with TVM MetaSchedule and with us, then time both winners.

    python -m experiments.tvm_peer.operators [--trials 32] [--seed 0] [--out FILE]

Both tuners get as many trials, one after the other, and both winners are timed in turns in one
process. Needs the packages of ``requirements.txt``, and torch must not be among them: TVM would
load it, and start its builders more slowly.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.cpu_matmul.timing import interleave
from experiments.tvm_peer import theirs
from tilewright.scheduler.best import best
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.operators import workload
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

Call = Callable[[], object]
RESULTS = Path(__file__).parent / "operators.json"
CONVOLUTIONS = (
    {"c": 64, "h": 56, "w": 56, "o": 64, "r": 3, "s": 3, "stride": 1, "padding": 1},
    {"c": 256, "h": 14, "w": 14, "o": 256, "r": 3, "s": 3, "stride": 1, "padding": 1},
    {"c": 3, "h": 224, "w": 224, "o": 64, "r": 7, "s": 7, "stride": 2, "padding": 3},
    {"c": 256, "h": 56, "w": 56, "o": 512, "r": 1, "s": 1, "stride": 2, "padding": 0},
)
"""Layers of ResNet-50, one image each."""
ROWS = {"r": 4096, "c": 1024}


def main() -> None:
    """Each operator's row is written as soon as it is measured."""
    options = _options()
    target = detect_target("cpu", threads=1)
    result: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "command": f"python -m experiments.tvm_peer.operators --trials {options.trials}"
        f" --seed {options.seed}",
        "target": target.to_json(),
        "trials": options.trials,
        "operators": {},
    }
    for name, problem, theirs_of in _cases():
        if options.only and options.only not in name:
            continue
        row = compare(problem, theirs_of, target, options)
        result["operators"][name] = row
        Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
        print(name, json.dumps(row), flush=True)


def _cases() -> list[tuple[str, Workload, Callable[[], Any]]]:
    """Return the names, problems, and how TVM is told of them."""
    found: list[tuple[str, Workload, Callable[[], Any]]] = []
    for words in CONVOLUTIONS:
        named = {"n": 1, **words}
        title = f"{words['c']} {words['r']}x{words['s']}/{words['stride']} at {words['h']}"
        problem = workload("conv2d", layout="NHWC", **named)
        found.append((f"{title} to {words['o']}", problem, lambda w=named: theirs.conv2d(w)))
    rows = f"softmax {ROWS['r']}x{ROWS['c']}"
    return [*found, (rows, workload("softmax", **ROWS), lambda: theirs.softmax(ROWS))]


def compare(
    problem: Workload, theirs_of: Callable[[], Any], target: Target, options: argparse.Namespace
) -> dict[str, Any]:
    """Return an operator's row: seconds of tuning, and those of a call of both winners."""
    inputs = problem.make_inputs(seed=1)
    ours, our_seconds, tried = tune_ours(problem, target, options, inputs)
    result = np.asarray(ours())
    entry, their_seconds = theirs.tuned(theirs_of(), options.trials, options.cpu, options.seed)
    other = theirs.bound(entry, _as_theirs(inputs), result, most=1e-2)
    times = interleave({"tilewright": ours, "tvm": other}, threads=1, rounds=40, seconds=4)
    return {
        "tuning_seconds": {"tilewright": our_seconds, "tvm": their_seconds},
        "trials": {"tilewright": tried, "tvm": options.trials},
        "median_s": {name: statistics.median(t) for name, t in times.items()},
        "least_s": {name: min(t) for name, t in times.items()},
    }


def tune_ours(
    problem: Workload, target: Target, options: argparse.Namespace, inputs: dict[str, np.ndarray]
) -> tuple[Call, float, int]:
    """Return our winner as a call without arguments, the seconds of tuning, and how many were
    tried."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/tuning.db"
        tuned = tune(problem, target, database, options.trials, 3600, seed=options.seed)
        seconds = time.perf_counter() - start
        function = best(problem, target, database)
    arrays = list(inputs.values())
    out = function(*arrays)
    return lambda: function(*arrays, out=out), seconds, tuned.trials


def _as_theirs(inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the arrays in the order of their dimensions: outputs of a filter come last."""
    arrays = list(inputs.values())
    if "filter" in inputs:
        arrays[1] = arrays[1].transpose(1, 2, 3, 0)
    return arrays


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.tvm_peer.operators")
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--cpu", default="", help="LLVM's name of this processor; as LLVM finds it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the names of operators")
    parser.add_argument("--out", default=str(RESULTS))
    return parser.parse_args()


if __name__ == "__main__":
    main()
