"""Finds the statistic and the clock that rank kernels best on a noisy machine.

    python -m experiments.timing_noise [--kernels 24] [--rounds 100] [--out FILE]

Times the same kernels many times, in shuffled rounds: first as the machine is, for the truth
(three times as many rounds), then beside processes that compete for cores and memory: four
beside kernels of one thread, one beside kernels of two. Of the noisy rounds every window of 1, 3,
5 or 9 consecutive ones stands for what a tuner would have seen. The truth is the fastest tenth of
its rounds (the 10th percentile), by CPU time for one thread and by wall time for two. Writes
JSON, prints a table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.measure.timing import FINAL
from tilewright.spaces.cpu.target import CpuTarget, detect_cpu
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

WORKLOAD = workload("matmul", m=512, n=512, k=512)
WINDOWS = (1, 3, 5, 9)
COMPUTES = "while True: pass"
STREAMS = "import numpy as np; a = np.ones(1 << 25)\nwhile True: a.sum()"

Statistic = Callable[[np.ndarray], np.ndarray]

STATISTICS: dict[str, Statistic] = {
    "min": lambda x: x.min(1),
    "second least": lambda x: np.sort(x, 1)[:, min(1, x.shape[1] - 1)],
    "median": lambda x: np.median(x, 1),
    "trimmed mean": lambda x: np.sort(x, 1)[:, : -(-x.shape[1] * 3 // 5)].mean(1),
    "mean": lambda x: x.mean(1),
}
"""Statistics of a matrix [kernels, samples]; the trimmed mean leaves out the slowest two fifths."""


def main() -> None:
    options = _options()
    result: dict[str, Any] = {
        "workload": str(WORKLOAD),
        "target": detect_cpu(1).summary,
        "kernels": options.kernels,
        "rounds": options.rounds,
        "load_before": os.getloadavg()[0],
        "cases": [],
    }
    for threads, clocks, competitors in ((1, ("cpu", "wall"), 4), (2, ("wall",), 1)):
        target = detect_cpu(threads)
        builder = CBuilder(target, jobs=2)
        built = _contenders(builder, target, options.kernels)
        true_clock = clocks[0]
        at_length = _sample(built, target, true_clock, 3 * options.rounds)
        truth = np.percentile(at_length, 10, axis=1)
        for clock in clocks:
            with _competition(competitors):
                samples = _sample(built, target, clock, options.rounds)
            for case in _judge(truth, samples):
                result["cases"].append({"threads": threads, "clock": clock, **case})
        result[f"spread_of_truth_{threads}"] = float(truth.max() / truth.min())
        builder.close()
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(_table(result["cases"]))


def _contenders(builder: CBuilder, target: CpuTarget, count: int) -> list[Built]:
    """Return the faster half of twice as many schedules drawn at random: ranking them is hard."""
    space = space_for(WORKLOAD, target)
    rows = space.sample(np.random.default_rng(0), 2 * count)
    schedules = [space.schedule(row) for row in rows]
    job = Job(new_job_id(), WORKLOAD, target)
    built = builder.build([Candidate(job, s, space.lower(s)) for s in schedules])
    runner = CRunner(target)
    measured = runner.run(job, built)
    runner.close()
    scores = [m.score if m.ok and m.score else math.inf for m in measured]
    return [built[i] for i in np.argsort(scores)[:count]]


def _sample(built: Sequence[Built], target: CpuTarget, clock: str, rounds: int) -> np.ndarray:
    """Matrix [kernels, rounds] of times in seconds, row i of kernel i."""
    everything = replace(FINAL, samples=rounds, budget=math.inf, drift=math.inf)
    runner = CRunner(target, clock=clock, protocol=everything)
    measured = runner.run(built[0].candidate.job, built)
    runner.close()
    return np.array([m.samples[-rounds:] for m in measured])


@contextmanager
def _competition(processes: int) -> Iterator[None]:
    scripts = [(COMPUTES, STREAMS)[i % 2] for i in range(processes)]
    running = [subprocess.Popen([sys.executable, "-c", script]) for script in scripts]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def _judge(truth: np.ndarray, samples: np.ndarray) -> Iterator[dict[str, Any]]:
    """Return, for each statistic and window, mean rank correlation with the truth, and the winner's
    regret (true time of the one that looks best over the least true time, less 1)."""
    for window in WINDOWS:
        for name, statistic in STATISTICS.items():
            if window == 1 and name != "min":
                continue
            ranks, regrets = [], []
            for start in range(samples.shape[1] - window + 1):
                seen = statistic(samples[:, start : start + window])
                ranks.append(spearmanr(seen, truth).statistic)
                regrets.append(truth[np.argmin(seen)] / truth.min() - 1)
            yield {
                "samples": window,
                "statistic": name if window > 1 else "the sample",
                "spearman": round(float(np.mean(ranks)), 4),
                "regret_mean": round(float(np.mean(regrets)), 5),
                "regret_worst": round(float(np.max(regrets)), 5),
            }


def _table(cases: Sequence[dict[str, Any]]) -> str:
    lines = ["threads clock samples statistic      spearman  regret: mean   worst"]
    for c in cases:
        lines.append(
            f"{c['threads']:7} {c['clock']:5} {c['samples']:7} {c['statistic']:13} "
            f"{c['spearman']:9.3f} {c['regret_mean']:12.2%} {c['regret_worst']:8.2%}"
        )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
