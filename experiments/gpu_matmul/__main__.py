"""Doctor, verify, tune and compare on the GPU of this machine; see README.md beside this file.

    python -m experiments.gpu_matmul [--minutes 10] [--seconds 20] [--trials N]
        [--only PATTERN] [--gpus N] [--rivals NAME ...] [--known FILE ...]
        [--out DIR]

Writes ``results.json`` after every case and ``results.svg`` at the end. A further call goes on:
it takes the cases that were tuned least, and tunes them from where they stand.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.gpu_matmul.bench import Bench
from experiments.gpu_matmul.cases import Case, all_cases
from experiments.gpu_matmul.known import known_records
from experiments.gpu_matmul.machine import machine, today, visible_gpus
from experiments.gpu_matmul.processes import map_in_processes
from experiments.gpu_matmul.summary import FASTEST, RIVALS, draw, in_turn, ratio, summarise
from tilewright.measure.database import Database
from tilewright.scheduler.verification import draw as draw_schedules
from tilewright.scheduler.verification import measure
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target, detect_target

VERIFIED = (
    {"m": 1000, "n": 1032, "k": 520, "dtype": "bfloat16", "epilogue": "gelu(x + bias[n])"},
    {"m": 515, "n": 1027, "k": 333, "dtype": "float16", "b": "col"},
    {"m": 640, "n": 512, "k": 1024, "dtype": "float8_e4m3fn", "out": "bfloat16", "b": "col"},
    {"m": 777, "n": 640, "k": 555, "dtype": "float32", "a": "col"},
    {"m": 256, "n": 512, "k": 512, "dtype": "int8", "b": "col", "c": "col"},
    {"m": 5, "n": 1032, "k": 520, "dtype": "bfloat16", "b": "col", "epilogue": "gelu(x + bias[n])"},
    {"m": 1, "n": 2048, "k": 4096, "dtype": "float16"},
    {"m": 1027, "n": 3, "k": 333, "dtype": "float32"},
)


def main() -> int:
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    try:
        target = detect_target("cuda")
    except InputError as error:
        print(f"gpu_matmul: {error}", file=sys.stderr)
        return 2
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {"cases": {}}

    def save() -> None:
        results["summary"] = summarise(results["cases"])
        path.write_text(json.dumps(results, indent=1) + "\n")

    if "machine" not in results:
        results["machine"] = machine(target)
        save()
    if "verification" not in results:
        results["verification"] = verify(target, options.schedules)
        save()
        print(json.dumps(results["verification"], indent=1), flush=True)
    gpus = visible_gpus()[: options.gpus]
    call = {name: getattr(options, name) for name in ("minutes", "seconds", "trials")}
    call |= {"only": options.only.pattern, "rivals": list(options.rivals)}
    results.setdefault("calls", []).append(call | {"gpus": len(gpus), "date": today()})

    def in_time() -> Iterator[Case]:
        for case in in_turn(all_cases(), results["cases"]):
            if options.only.search(case.name) and end - time.monotonic() > options.seconds + 10:
                yield case

    if options.known:
        with Database(out / "tuning.db") as database:
            for known in options.known:
                database.record_all(list(known_records(known, all_cases(), target)))
    bench = Bench(options.seconds, options.trials, out / "tuning.db", tuple(options.rivals))
    for case, row in map_in_processes(in_time(), gpus, bench):
        before = results["cases"].get(case.name, {})
        if not row["median_s"]:  # too short a time to find anything
            row = {**row, **before, "tuning_seconds": row["tuning_seconds"]}
        row["tuning_seconds"] += before.get("tuning_seconds", 0.0)
        results["cases"][case.name] = row
        save()
        print(line(case.name, row), flush=True)
    save()
    draw(results["cases"], out / "results.svg")
    print(json.dumps(results["summary"], indent=1))
    return 0


def verify(target: Target, schedules: int) -> dict[str, Any]:
    """Random schedules of every template on the hardware, against the float64 reference."""
    counts: dict[str, Counter[str]] = {}
    failures = []
    for seed, parameters in enumerate(VERIFIED):
        space = space_for(workload("matmul", **parameters), target)
        for verdict in measure(space, draw_schedules(space, schedules, seed)):
            counts.setdefault(verdict.schedule.template, Counter())[verdict.outcome] += 1
            if verdict.outcome == "wrong":
                text = f"{verdict.error_kind}: {verdict.error_text}"
                failures.append(
                    {
                        "workload": str(space.workload),
                        "schedule": verdict.schedule.to_json(),
                        "error": text,
                    }
                )
    return {"templates": counts, "failures": failures}


def line(name: str, row: dict[str, Any]) -> str:
    """Return one case in a line."""
    times = " ".join(f"{who} {1e6 * t:.2f}" for who, t in row["median_s"].items())
    over = ratio(row, FASTEST)
    against = "no time" if over is None else f"{over:.3f} x the fastest"
    return f"{name:34s} {against}, us: {times} ({row['trials']} trials)"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.gpu_matmul")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all of it")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tuning a case in a call")
    parser.add_argument("--trials", type=int, default=1 << 16, help="new ones a case in a call")
    parser.add_argument("--schedules", type=int, default=12, help="to verify of each problem")
    parser.add_argument(
        "--only", type=re.compile, default="", help="only cases whose name this expression matches"
    )
    parser.add_argument("--gpus", type=int, help="to use, one case each at a time; all of them")
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=RIVALS)
    parser.add_argument(
        "--known", type=Path, nargs="+", help="results.json of earlier runs to begin with"
    )
    parser.add_argument("--out", type=Path, default=Path("gpu_matmul_results"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
