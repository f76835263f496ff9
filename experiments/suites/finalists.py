"""Judge the winner of a final comparison by its size and by the statistic that ranks.

    python -m experiments.suites.finalists [--suite bert-base] [--place 4] [--seconds 60]
                                           [--leaders 40] [--times 8] [--out FILE]

Tunes one workload of a suite, and compares its leaders, those that looked best while searching, so
many times. Each comparison in turn is what a tuner would have seen; the truth is the median over
the others of a leader's time, by its median sample, over that of all leaders. *Regret* is the true
time of who wins over the least true time, less 1, for the first 8, 20 and all leaders. Writes JSON.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from tilewright.measure.database import Database
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.scheduler.defaults import local_executor
from tilewright.scheduler.suites.suite import read_suite
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

FEW = (8, 20)
STATISTICS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "least": lambda samples: samples.min(-1),
    "lower quartile": lambda samples: np.quantile(samples, 0.25, -1),
    "median": lambda samples: np.median(samples, -1),
}


def main() -> None:
    options = _options()
    workload = read_suite(options.suite).members[options.place].workload
    target = detect_target("cpu", 1)
    trials, leaders = _leaders(workload, target, options.seconds, options.leaders)
    with closing(local_executor(target)) as executor:
        samples = [_compared(workload, target, leaders, executor) for _ in range(options.times)]
    least = min(len(of_one) for comparison in samples for of_one in comparison)
    cut = [[of_one[:least] for of_one in comparison] for comparison in samples]
    regrets = judged(np.array(cut))
    about = {"date": datetime.date.today().isoformat(), "workload": str(workload)}
    about |= {"target": target.summary, "load": os.getloadavg()[0], "trials": trials}
    options.out.write_text(json.dumps({**about, "regrets": regrets}, indent=1) + "\n")
    for name, found in regrets.items():
        print(f"{name:15} " + ", ".join(f"{100 * r:.2f} % of {n}" for n, r in found.items()))


def judged(samples: np.ndarray) -> dict[str, dict[int, float]]:
    """Return the mean regret by statistic and number of finalists, of samples in seconds by
    comparison, leader and round."""
    relative = _relative(np.median(samples, -1))
    found: dict[str, dict[int, float]] = {}
    for name, statistic in STATISTICS.items():
        seen = statistic(samples)
        found[name] = {}
        for count in [few for few in FEW if few < samples.shape[1]] + [samples.shape[1]]:
            regrets = []
            for place, scores in enumerate(seen[:, :count]):
                truth = np.median(np.delete(relative, place, 0), 0)
                regrets.append(truth[scores.argmin()] / truth.min() - 1)
            found[name][count] = round(float(np.mean(regrets)), 5)
    return found


def _relative(times: np.ndarray) -> np.ndarray:
    return times / np.median(times, -1, keepdims=True)


def _leaders(
    workload: Workload, target: Target, seconds: float, count: int
) -> tuple[int, list[Schedule]]:
    """Return the number of trials of a run, and the schedules that looked best in its search."""
    with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/tuning.db") as database:
        result = tune(workload, target, database, 1_000_000, seconds)
        known = [record.measurement for record in database.records(workload, target)]
    searched = [m for m in known if m.ok and m.round == "search"]
    ranked = sorted(searched, key=lambda m: m.score or 0.0)
    return result.trials, [m.schedule for m in ranked[:count]]


def _compared(
    workload: Workload, target: Target, schedules: list[Schedule], executor: Executor
) -> list[list[float]]:
    """Return the samples of each in one comparison, in seconds."""
    space, job = space_for(workload, target), Job(new_job_id(), workload, target, final=True)
    executor.submit(job, [Candidate(job, s, space.lower(s)) for s in schedules])
    found: dict[Schedule, tuple[float, ...]] = {}
    while executor.pending(job):
        for result in executor.results(None, job):
            found[result.candidate.schedule] = result.measurement.samples
    return [list(found[schedule]) for schedule in schedules]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.suites.finalists")
    parser.add_argument("--suite", default="bert-base")
    parser.add_argument("--place", type=int, default=4, help="of the workload in the suite")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--leaders", type=int, default=40)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("finalists.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
