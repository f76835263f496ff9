"""Tune one square size with TVM MetaSchedule and with us, then time both winners.

    python -m experiments.tvm_peer [--size 512] [--trials 64] [--cpu znver4] [--seed 0]

Needs the packages of ``requirements.txt``. Appends to ``results.json`` beside this file.
"""

from __future__ import annotations

import os

# NumPy reads this when it loads: a value such as Haswell would halve OpenBLAS on AVX-512.
os.environ.pop("OPENBLAS_CORETYPE", None)

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
import threadpoolctl

from experiments.cpu_matmul.timing import interleave
from experiments.tvm_peer import theirs
from tilewright.scheduler.best import best
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    options = _options()
    size, trials = options.size, options.trials
    problem = workload("matmul", m=size, n=size, k=size)
    inputs = problem.make_inputs(seed=1)
    entry, their_seconds = theirs.tuned(theirs.matmul(size), trials, options.cpu, options.seed)
    product = inputs["A"] @ inputs["B"]
    ours, our_seconds = tune_ours(problem, trials, options.seed, inputs)
    out = np.empty((size, size), np.float32)
    with threadpoolctl.threadpool_limits(1):
        calls = {
            "tilewright": ours,
            "tvm": theirs.bound(entry, [inputs["A"], inputs["B"]], product, most=1e-3),
            "openblas": lambda: np.matmul(inputs["A"], inputs["B"], out=out),
        }
        times = interleave(calls, threads=1, rounds=40, seconds=60)
    result = {
        "date": datetime.date.today().isoformat(),
        "command": f"python -m experiments.tvm_peer --size {size} --trials {trials}"
        f" --cpu {options.cpu} --seed {options.seed}",
        "target": detect_target("cpu").to_json(),
        "size": size,
        "trials": trials,
        "tuning_seconds": {"tilewright": our_seconds, "tvm": their_seconds},
        "gflops": {name: problem.flops / min(t) / 1e9 for name, t in times.items()},
        "median_s": {name: statistics.median(t) for name, t in times.items()},
    }
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    RESULTS.write_text(json.dumps([*known, result], indent=1) + "\n")
    print(json.dumps(result, indent=1))


def tune_ours(
    problem: Any, trials: int, seed: int, inputs: dict[str, np.ndarray]
) -> tuple[Callable[[], object], float]:
    """Return our winner as a call without arguments, and the seconds of tuning."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/tuning.db"
        tune(problem, "cpu", database, trials=trials, seconds=3600, seed=seed)
        seconds = time.perf_counter() - start
        function = best(problem, "cpu", database)
    out = function(inputs["A"], inputs["B"])
    return lambda: function(inputs["A"], inputs["B"], out=out), seconds


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.tvm_peer")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--cpu", default="", help="LLVM's name of this processor; as LLVM finds it")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
