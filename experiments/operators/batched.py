"""Batches of products against torch and NumPy, or cuBLAS; see README.md beside this file.

    python -m experiments.operators.batched --target cpu|cuda [--seconds 40] [--trials N]
        [--only PATTERN] [--known FILE] [--out FILE]

Each case is tuned, from an empty database or from the winners of an earlier run, and then timed in
turns with the libraries. Writes the results after every case, and a table beside them; a further
call with the same file goes on with cases not in it.
"""

from __future__ import annotations

import os

# NumPy reads this when it loads: a value such as Haswell would halve OpenBLAS on AVX-512.
os.environ.pop("OPENBLAS_CORETYPE", None)

import argparse
import json
import re
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.operators.exploring.verifying import verify
from experiments.operators.summary import OURS, figures, line, table
from experiments.recorded import recorded_schedule
from experiments.resuming import remaining, resume, write
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """``batch`` products of m x n x k, neighbours of which share a B in groups of ``shared``."""

    batch: int
    m: int
    n: int
    k: int
    dtype: str
    shared: int = 1
    threads: int = 0

    @property
    def name(self) -> str:
        """A name such as ``32/8 x 512x512x64 float32 t2``."""
        groups = f"/{self.batch // self.shared}" if self.shared > 1 else ""
        threads = f" t{self.threads}" if self.threads else ""
        return f"{self.batch}{groups} x {self.m}x{self.n}x{self.k} {self.dtype}{threads}"

    @property
    def workload(self) -> Workload:
        """Heads that share a B are rows of one product with it."""
        rows, batch = self.m * self.shared, self.batch // self.shared
        return workload("matmul", batch=batch, m=rows, n=self.n, k=self.k, dtype=self.dtype)


CPU_SHAPES = ((12, 128, 128, 64, 1), (32, 512, 64, 512, 1), (32, 512, 512, 64, 4))
GPU_SHAPES = ((512, 512, 512, 64), (96, 1024, 64, 1024), (64, 128, 128, 4096))
CASES = {
    "cpu": tuple(
        Case(*shape, "float32", shared, threads)
        for threads in (1, 2)
        for *shape, shared in CPU_SHAPES
    ),
    "cuda": tuple(Case(*shape, "bfloat16") for shape in GPU_SHAPES),
}
SLACK = 1e-3
"""Allowed error of sums of thousands of terms in float32, as a share of the outputs' mean."""
VERIFIED = (
    {"batch": 5, "m": 333, "n": 264, "k": 200, "epilogue": "x * s[batch] + r[batch,m,n]"},
    {"batch": 2, "heads": 3, "m": 136, "n": 200, "k": 72, "a": "col", "c": "col"},
    {"batch": 7, "m": 4, "n": 1032, "k": 520, "b": "col", "epilogue": "x + bias[n]"},
)


def main() -> None:
    options = _options()
    path: Path = options.out
    known = json.loads(options.known.read_text())["cases"] if options.known else {}
    detected = detect_target(options.target)
    results = resume(path, "experiments.operators.batched", {"target": detected.to_json()})
    verified = [workload("matmul", dtype="bfloat16", **parameters) for parameters in VERIFIED]
    verify(results, verified, detected, options.verify)
    for case in remaining(CASES[options.target], results, options.only):
        before = known.get(case.name)
        row = run(case, options.target, options.trials, options.seconds, before)
        results["cases"][case.name] = row
        results["summary"] = figures(results["cases"])
        write(path, results, table)
        print(line(case.name, row), flush=True)
    print(json.dumps(results.get("summary", {})))


def run(
    case: Case, kind: str, trials: int, seconds: float, before: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Tune one case, from its row of an earlier run if there is one, then time it against the
    libraries."""
    target = detect_target(kind, threads=case.threads or None)
    with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/tuning.db") as database:
        if before:
            database.record_all([known_record(case, target, before)])
        tuned = tune(case.workload, target, database, trials, seconds)
    assert tuned.best is not None, f"nothing found: {dict(tuned.failures)}"
    schedule = tuned.best.schedule
    times = (on_cpu if kind == "cpu" else on_gpu)(case, target, schedule)
    median = {name: statistics.median(t) for name, t in times.items()}
    return {
        "median_s": median,
        "least_s": {name: min(t) for name, t in times.items()},
        "gflops": {name: case.workload.flops / t / 1e9 for name, t in median.items()},
        "schedule": schedule.to_json(),
        "trials": tuned.trials,
        "tuning_seconds": tuned.seconds,
        "failures": dict(tuned.failures),
    }


def known_record(case: Case, target: Target, row: Mapping[str, Any]) -> Record:
    """The winner of an earlier run with the time it had there."""
    schedule, seconds = recorded_schedule(row["schedule"]), row["median_s"][OURS]
    clock = "device" if target.kind == "cuda" else "cpu"
    found = Measurement(schedule, Status.OK, seconds, (seconds,), clock=clock, round="final")
    space = space_for(case.workload, target)
    return Record(case.workload, target, space.version_of(schedule), found)


def on_cpu(case: Case, target: Target, schedule: Any) -> dict[str, list[float]]:
    """Return the seconds of our kernel and of what torch and NumPy offer for it, in turns."""
    import numpy as np
    import threadpoolctl
    import torch

    from experiments.cpu_matmul.timing import interleave
    from tilewright.scheduler.functions.cpu_function import CpuFunction

    torch.set_num_threads(case.threads)
    ours = CpuFunction(space_for(case.workload, target), schedule, "tuned")
    inputs = case.workload.make_inputs(seed=1)
    a, b = inputs["A"], inputs["B"]
    result, out = ours(a, b), np.empty(case.workload.outputs[0].shape, np.float32)
    np.testing.assert_allclose(result, np.matmul(a, b), rtol=1e-3, atol=1e-3)
    x, y, z = (torch.from_numpy(array) for array in (a, b, out))
    calls: dict[str, Call] = {
        OURS: lambda: ours(a, b, out=result),
        "torch": lambda: torch.bmm(x, y, out=z),
        "numpy": lambda: np.matmul(a, b, out=out),
    }
    if case.shared > 1:
        heads = x.view(len(y), case.shared, case.m, case.k)
        calls["torch, broadcast"] = lambda: torch.matmul(heads, y[:, None])
    with threadpoolctl.threadpool_limits(case.threads), torch.no_grad():
        return interleave(calls, case.threads, rounds=40, seconds=10)


def on_gpu(case: Case, target: Target, schedule: Any) -> dict[str, list[float]]:
    """Device seconds of our kernel and of cuBLAS, by torch, in turns."""
    import torch

    from experiments.gpu_matmul.timing import interleave
    from tilewright.scheduler.functions.cuda_function import CudaFunction

    ours = CudaFunction(space_for(case.workload, target), schedule, "tuned")
    kind = getattr(torch, case.dtype)
    a, b, c = (
        torch.rand(operand.shape, device="cuda").mul_(2).sub_(1).to(kind)
        for operand in case.workload.operands
    )
    exact = torch.bmm(a[:4].double(), b[:4].double())
    ours(a, b, out=c)
    assert bool(((c[:4].double() - exact).abs() <= 0.01 * exact.abs() + 0.05).all())
    other = torch.empty_like(c)
    return interleave(
        {OURS: lambda: ours(a, b, out=c), "cublas": lambda: torch.bmm(a, b, out=other)}
    )


def explorer_of(case: Case, target: Target) -> Any:
    """Make the explorer of the case's kernels on a GPU, with random inputs. Exact outputs are
    torch's in float64."""
    import torch

    from experiments.operators.exploring.explore import Explorer
    from experiments.operators.exploring.tensors import inputs_like

    tensors = inputs_like(case.workload)
    exact = torch.bmm(*(tensor.double() for tensor in tensors.values()))
    return Explorer(space_for(case.workload, target), tensors, [exact], slack=SLACK)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.operators.batched")
    parser.add_argument("--target", choices=CASES, required=True)
    parser.add_argument("--seconds", type=float, default=40.0, help="of tuning a case")
    parser.add_argument("--trials", type=int, default=128, help="new ones a case")
    parser.add_argument("--verify", type=int, default=0, help="schedules of each of a few problems")
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    parser.add_argument("--known", type=Path, help="results of an earlier run to begin with")
    parser.add_argument("--out", type=Path, default=Path("batched.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
