"""Kernels of several cases in turns: rates of forms, compared in one run and at one temperature.

    python -m experiments.attention.side_by_side RESULTS [--only PATTERN]

The best schedules of the cases in the results whose names match are built, judged and timed; what
was found stands in the same file. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.attention.cases import CASES, AttentionCase, completed
from experiments.attention.tensors import drawn, exact
from experiments.attention.trying import Trial, serving
from experiments.gpu_matmul.timing import interleave
from experiments.operators.summary import OURS
from experiments.resuming import write
from tilewright.spaces.schedule import Value
from tilewright.spaces.target import detect_target


def trial_of(case: AttentionCase, template: str) -> Trial:
    """Return one of a case's kernels by a template, of whose inputs the right outputs are known."""
    target = detect_target("cuda")
    (served,) = (t for t in serving(case, target) if t.name == template)
    tensors = drawn(case)
    return Trial.of(case, target, served, tensors, exact(case, tensors))


def call_of(case: AttentionCase, template: str, values: Mapping[str, Value]) -> Callable[[], None]:
    """Return a call of the kernel that some values of a template's decisions are, once it was
    right."""
    trial = trial_of(case, template)
    chosen = completed(trial.space.templates[template], values)
    assert chosen
    trial.judge_all([chosen])
    assert chosen in trial.seconds, f"{case.name}: {trial.outcomes}"
    return trial.calls[chosen]


def best_call(case: AttentionCase, row: dict[str, Any]) -> Callable[[], None]:
    """Return a call of the kernel that was the best of a case."""
    return call_of(case, row["best"].split()[0], row["schedule"])


def beside_ours(
    case: AttentionCase,
    best: dict[str, Any],
    others: Mapping[str, Callable[[], Any]],
    rounds: int,
    seconds: float,
    heat: float,
) -> dict[str, Any]:
    """Return our best kernel of a case in turns with other calls: medians, rates, and the others'
    times over ours."""
    calls = {OURS: best_call(case, best), **others}
    times = interleave(calls, rounds=rounds, seconds=seconds, heat=heat)
    median = {name: statistics.median(found) for name, found in times.items()}
    return {
        "median_s": median,
        "tflops": {name: case.flops / t / 1e12 for name, t in median.items()},
        "ratio": {name: t / median[OURS] for name, t in median.items() if name != OURS},
        "schedule": best["schedule"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.attention.side_by_side")
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    rows = {c: results["cases"].get(c.name, {}) for c in CASES if options.only.search(c.name)}
    calls = {c.name: best_call(c, row) for c, row in rows.items() if "best" in row}
    times = interleave(calls, rounds=30, seconds=2.0, heat=0.5)
    found = {}
    for case in (case for case in rows if case.name in times):
        median = statistics.median(times[case.name])
        found[case.name] = {"us": 1e6 * median, "tflops": case.flops / median / 1e12}
        print(f"{case.name}: {1e6 * median:.1f} us, {found[case.name]['tflops']:.1f} TFLOP/s")
    results["side_by_side"] = {**results.get("side_by_side", {}), **found}
    write(options.results, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
