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
from scheduler.best import best
from scheduler.tuning.tuner import tune
from spaces.operators import workload
from spaces.target import detect_target

RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    options = _options()
    size, trials = options.size, options.trials
    problem = workload("matmul", m=size, n=size, k=size)
    inputs = problem.make_inputs(seed=1)
    theirs, their_seconds = tune_tvm(size, trials, options.cpu, options.seed, inputs)
    ours, our_seconds = tune_ours(problem, trials, options.seed, inputs)
    out = np.empty((size, size), np.float32)
    with threadpoolctl.threadpool_limits(1):
        calls = {
            "tilewright": ours,
            "tvm": theirs,
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
    """Our winner as a call without arguments, and the seconds of tuning."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/tuning.db"
        tune(problem, "cpu", database, trials=trials, seconds=3600, seed=seed)
        seconds = time.perf_counter() - start
        function = best(problem, "cpu", database)
    out = function(inputs["A"], inputs["B"])
    return lambda: function(inputs["A"], inputs["B"], out=out), seconds


def tune_tvm(
    size: int, trials: int, cpu: str, seed: int, inputs: dict[str, np.ndarray]
) -> tuple[Callable[[], object], float]:
    """MetaSchedule's winner as a call without arguments, and the seconds of tuning."""
    import tvm
    from tvm import te
    from tvm.s_tir import meta_schedule

    a = te.placeholder((size, size), "float32", "A")
    b = te.placeholder((size, size), "float32", "B")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    function = te.create_prim_func([a, b, c])
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": 1})
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = meta_schedule.tir_integration.tune_tir(
            function, target, folder, max_trials_global=trials, num_tuning_cores=2, seed=seed
        )
        seconds = time.perf_counter() - start
        schedule = meta_schedule.tir_integration.compile_tir(database, function, target)
        if schedule is None:
            raise SystemExit("tvm_peer: MetaSchedule found no kernel that runs")
        module = tvm.compile(schedule.mod, target=target)
    arrays = [tvm.runtime.tensor(x) for x in (inputs["A"], inputs["B"])]
    out = tvm.runtime.tensor(np.zeros((size, size), np.float32))
    entry = module["main"]
    entry(*arrays, out)
    error = np.abs(out.numpy() - inputs["A"] @ inputs["B"]).max()
    if not error < 1e-3:
        raise SystemExit(f"tvm_peer: MetaSchedule's kernel is off by {error}")
    return lambda: entry(*arrays, out), seconds


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.tvm_peer")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--cpu", default="znver4", help="LLVM's name of this processor")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
