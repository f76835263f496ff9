"""Times what searches find on a GPU: from nothing, and from another GPU's measurements.

    python -m experiments.search.budgets [--seconds 60 600] [--warm 15 --known FILE ...]
        [--only PATTERN] [--gpus N] [--minutes 10] [--out FILE]

Products of ``experiments.gpu_matmul`` are tuned from an empty database until each of the seconds
has passed, by runs that go on with each other; and for ``--warm`` seconds from a database that
holds the winners of the ``results.json`` at FILE, as records of the GPU that they are of. What each
run found is timed in turns with cuBLAS. A further call goes on with cases that the file lacks.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.gpu_matmul.cases import Case, all_cases
from experiments.gpu_matmul.known import known_records
from experiments.gpu_matmul.machine import machine, visible_gpus
from experiments.gpu_matmul.processes import map_in_processes
from experiments.recorded import recorded_schedule
from experiments.resuming import remaining, resume, write
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.scheduler.functions.cuda_function import CudaFunction
from tilewright.scheduler.tuning.events import TuningResult
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target, target_from_json
from tilewright.spaces.workloads.workload import Workload

TRIALS = 1 << 16
COMPARING = 15.0  # seconds of a case beside its searches


def after(
    workload: Workload,
    database: Path,
    seconds: Sequence[float],
    executor: LocalExecutor | None = None,
) -> Iterator[tuple[float, TuningResult]]:
    """Yield each of the seconds, and how the search stood by then, its winner found by a
    comparison."""
    spent = 0.0
    for each in seconds:
        found = tune(workload, "cuda", database, TRIALS, each - spent, executor=executor)
        spent += found.seconds
        yield each, found


def told(result: TuningResult) -> dict[str, Any]:
    """Return the fields of a row on a run."""
    best = result.best
    return {
        "seconds": result.seconds,
        "trials": result.trials,
        "failures": dict(result.failures),
        "schedule": best.schedule.to_json() if best else None,
    }


@dataclass
class Budgets:
    """Makes, within its block, a function that gives the row of a case on the first GPU of its
    process."""

    seconds: tuple[float, ...]
    warm: float
    known: tuple[Path, ...]

    def __enter__(self) -> Budgets:
        self._target = detect_target("cuda")
        self._executor = LocalExecutor(self._target)
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.close()

    def __call__(self, case: Case) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            runs = {
                f"{seconds:g} s": told(result)
                for seconds, result in after(
                    case.workload, Path(folder, "cold.db"), self.seconds, self._executor
                )
            }
            if self.known:
                warm = Path(folder, "warm.db")
                self._remember(warm)
                ((_, result),) = after(case.workload, warm, [self.warm], self._executor)
                runs[f"{self.warm:g} s, warm"] = told(result)
        found = {name: run["schedule"] for name, run in runs.items() if run["schedule"]}
        return {"runs": runs, "median_s": self._in_turns(case, found)}

    def _remember(self, path: Path) -> None:
        """Record another GPU's measurements of this case and of others."""
        with Database(path) as database:
            for known in self.known:
                there = target_from_json(json.loads(known.read_text())["machine"]["target"])
                assert there != self._target, f"{known} is of this kind of GPU"
                database.record_all(list(known_records(known, all_cases(), there)))

    def _in_turns(self, case: Case, found: dict[str, Any]) -> dict[str, float]:
        """Return the medians of what each run found, the same time for the same schedule, and
        cuBLAS's."""
        import torch

        from experiments.gpu_matmul.contenders import cublas, tensors
        from experiments.gpu_matmul.timing import interleave

        torch.backends.cuda.matmul.allow_tf32 = False
        a, b, c = tensors(case)
        space = space_for(case.workload, self._target)
        schedules = {name: recorded_schedule(each) for name, each in found.items()}
        functions = {s.key: CudaFunction(space, s, "tuned") for s in schedules.values()}
        calls = {key: lambda f=f: f(a, b, out=c) for key, f in functions.items()}
        times = interleave(calls | {"cublas": cublas(a, b, torch.empty_like(c))}, rounds=60)
        median = {key: statistics.median(each) for key, each in times.items()}
        ours = {name: median[schedule.key] for name, schedule in schedules.items()}
        return {**ours, "cublas": median["cublas"]}


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summarise each run over the cases: the time of the longest cold search's winner, and
    cuBLAS's, over its own winner's, as geometric mean and least."""
    runs = {name for row in rows for name in row["median_s"]} - {"cublas"}
    found: dict[str, Any] = {}
    for name in sorted(runs):
        times = [row["median_s"] for row in rows if name in row["median_s"]]
        longest = [t[max((n for n in t if n.endswith(" s")), key=_seconds)] for t in times]
        ratios = {
            "of the longest": [a / t[name] for a, t in zip(longest, times, strict=True)],
            "over cublas": [t["cublas"] / t[name] for t in times],
        }
        found[name] = {"cases": len(times)} | {
            what: {"geomean": statistics.geometric_mean(each), "least": min(each)}
            for what, each in ratios.items()
        }
    return found


def _seconds(name: str) -> float:
    return float(name.split()[0])


def main() -> int:
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    target = detect_target("cuda")
    results = resume(options.out, "experiments.search.budgets", {"machine": machine(target)})
    needed = max(options.seconds) + (options.warm if options.known else 0) + COMPARING

    def in_time() -> Iterator[Case]:
        yield from remaining(all_cases(), results, options.only, end - needed)

    bench = Budgets(tuple(options.seconds), options.warm, tuple(options.known))
    for case, row in map_in_processes(in_time(), visible_gpus()[: options.gpus], bench):
        results["cases"][case.name] = row
        results["summary"] = summary(list(results["cases"].values()))
        write(options.out, results)
        words = ", ".join(f"{name} {1e6 * t:.2f} us" for name, t in row["median_s"].items())
        print(f"{case.name}: {words}", flush=True)
    print(json.dumps(results.get("summary"), indent=1))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.search.budgets")
    parser.add_argument("--seconds", type=float, nargs="+", default=[60.0, 600.0])
    parser.add_argument("--warm", type=float, default=15.0, help="of search with what is known")
    parser.add_argument(
        "--known", type=Path, nargs="+", default=[], help="results.json of another GPU"
    )
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    parser.add_argument("--gpus", type=int, help="to use, one case each at a time; all of them")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all of it")
    parser.add_argument("--out", type=Path, default=Path("budgets.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
