"""Tune every case from an empty database, then compare with the libraries and write the results.

    python -m experiments.cpu_matmul [--only TEXT] [--trials 128] [--seconds 60] [--out DIR]

Writes ``results.json`` (after every case; finished cases are kept on the next call) and
``results.svg``. A case that is to be measured again is removed from ``results.json`` first.
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
from pathlib import Path
from typing import Any

import threadpoolctl
import torch

from experiments.cpu_matmul.baselines import Call, as_tensor, baselines
from experiments.cpu_matmul.cases import Case, all_cases
from experiments.cpu_matmul.plot import draw
from experiments.cpu_matmul.timing import interleave
from tilewright.measure.cpu.peak import measure_peaks, readers
from tilewright.measure.database import Database
from tilewright.scheduler.best import best
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.target import detect_target

HERE = Path(__file__).parent


def main() -> None:
    options = _options()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {"machine": {}, "cases": {}}
    for case in all_cases():
        if case.name in results["cases"] or options.only not in case.name:
            continue
        results["machine"] = machine(options)
        results["cases"][case.name] = run(case, options.trials, options.seconds)
        path.write_text(json.dumps(results, indent=1) + "\n")
        print(line(case.name, results["cases"][case.name]), flush=True)
    summary = summarise(results["cases"])
    results["summary"] = summary
    path.write_text(json.dumps(results, indent=1) + "\n")
    draw(results["cases"], out / "results.svg")
    print(json.dumps(summary, indent=1))


def run(case: Case, trials: int, seconds: float) -> dict[str, Any]:
    """Tune one case from an empty database, then time it against the libraries."""
    workload, target = case.workload, detect_target("cpu", threads=case.threads)
    torch.set_num_threads(case.threads)
    with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/tuning.db") as database:
        tuned = tune(workload, target, database, trials, seconds)
        ours = best(workload, target, database)
    inputs = workload.make_inputs(seed=1)
    arguments = [inputs[operand.name] for operand in workload.operands[:-1]]
    result = ours(*arguments)
    error = abs(result.astype("float64") - workload.matmul.reference(inputs)).max()
    if case.dtype == "bfloat16":
        arguments = [as_tensor(array) for array in arguments]
        result = as_tensor(result)
    with threadpoolctl.threadpool_limits(case.threads), torch.no_grad():
        libraries, refused = _usable(baselines(case, inputs))
        calls = {"tilewright": lambda: ours(*arguments, out=result)} | libraries
        reads = readers(target, workload.least_bytes) if case.m == 1 else {}
        times = interleave(calls | reads, case.threads, rounds=40, seconds=12)
    read = {name: times.pop(name) for name in reads}
    return {
        "gflops": {name: workload.flops / min(t) / 1e9 for name, t in times.items()},
        "best_s": {name: min(t) for name, t in times.items()},
        "median_s": {name: statistics.median(t) for name, t in times.items()},
        "least_bytes": workload.least_bytes,
        "max_abs_error": float(error),
        "schedule": ours.schedule.to_json(),
        "trials": tuned.trials,
        "tuning_seconds": tuned.seconds,
        "peak": peaks(target),
        "refused": refused,
    } | of_reading(read, times["tilewright"])


def _usable(calls: dict[str, Call]) -> tuple[dict[str, Call], dict[str, str]]:
    """Return the calls that run on this machine, and why the others do not, by name."""
    usable, refused = {}, {}
    for name, call in calls.items():
        try:
            call()
            usable[name] = call
        except RuntimeError as error:  # oneDNN has no bfloat16 where the processor has none
            refused[name] = str(error).partition("\n")[0]
    return usable, refused


def of_reading(read: dict[str, list[float]], ours: list[float]) -> dict[str, Any]:
    """Return how our kernel compares with only reading as many bytes, in the same rounds: the share
    of the bandwidth of the fastest reader, by minima and by medians. Empty without readers."""
    if not read:
        return {}
    return {
        "read_best_s": {name: min(t) for name, t in read.items()},
        "read_median_s": {name: statistics.median(t) for name, t in read.items()},
        "of_read_bandwidth": min(map(min, read.values())) / min(ours),
        "of_read_bandwidth_by_medians": min(map(statistics.median, read.values()))
        / statistics.median(ours),
    }


def peaks(target: Any) -> dict[str, float]:
    """Return the machine's measured peaks for this number of threads."""
    measured = measure_peaks(target)
    return {"fma_gflops": measured.fma_gflops, "read_gbs": measured.read_gbs["main"]}


def ratio(row: dict[str, Any], statistic: str = "best_s") -> float:
    """Fastest library's time over ours: above 1.0 we are faster."""
    times = row[statistic]
    return min(t for name, t in times.items() if name != "tilewright") / times["tilewright"]


def line(name: str, row: dict[str, Any]) -> str:
    rates = " ".join(f"{library} {rate:.1f}" for library, rate in row["gflops"].items())
    return f"{name:36s} ratio {ratio(row):.3f} GFLOP/s: {rates} ({row['tuning_seconds']:.0f} s)"


def summarise(cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return, per group of cases, geometric mean and minimum of the ratios, by minimum and by
    median."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, row in cases.items():
        groups.setdefault(name.split(" ", 1)[1], []).append(row)
    summary = {}
    for group, rows in groups.items():
        by_best = [ratio(row) for row in rows]
        by_median = [ratio(row, "median_s") for row in rows]
        summary[group] = {
            "cases": len(rows),
            "geomean": statistics.geometric_mean(by_best),
            "minimum": min(by_best),
            "geomean_of_medians": statistics.geometric_mean(by_median),
            "minimum_of_medians": min(by_median),
        }
    return summary


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """Describe the machine and the software that the numbers were measured with."""
    target = detect_target("cpu", threads=1).to_json()
    blas = [
        f"{pool['internal_api']} {pool.get('architecture', '')} {pool.get('version', '')}".strip()
        for pool in threadpoolctl.threadpool_info()
    ]
    return {
        "date": datetime.date.today().isoformat(),
        "command": "python -m experiments.cpu_matmul"
        f" --trials {options.trials} --seconds {options.seconds:g}",
        "target": target,
        "torch": torch.__version__,
        "libraries": blas,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.cpu_matmul")
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=60.0, help="of tuning, a case")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
