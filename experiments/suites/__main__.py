"""Compare the task scheduler with equal shares that have twice the time, and write JSON.

python -m experiments.suites [--suite bert-base] [--seconds 600] [--seeds 0 1 2] [--threads 1]
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from measure.database import Database
from measure.interfaces import Executor
from measure.records.measurement import Candidate, Job, new_job_id
from scheduler.defaults import local_executor
from scheduler.suites.allocation import Allocation, by_gradient, in_turn
from scheduler.suites.progress import SuiteResult
from scheduler.suites.suite import Suite, read_suite
from scheduler.suites.tuner import SuiteTuner
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.target import Target, detect_target
from spaces.workload import Workload

TRIALS = 1_000_000  # more than there is time for
GRADIENT, EQUAL = "by gradient", "equal shares"
CONTENDERS: dict[str, tuple[Allocation, float]] = {
    GRADIENT: (by_gradient, 1.0),
    EQUAL: (in_turn, 2.0),
}
"""How trials are given, and the time allowed, in units of ``--seconds``."""


def main() -> None:
    options = _options()
    suite, target = read_suite(options.suite), detect_target("cpu", options.threads)
    report: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "suite": options.suite,
        "target": target.summary,
        "seconds": options.seconds,
        "seeds": [],
    }
    for seed in options.seeds:
        report["seeds"].append(compare(suite, target, options.seconds, seed))
        options.out.write_text(json.dumps(report, indent=1) + "\n")
        print(f"seed {seed}: ratio {report['seeds'][-1]['ratio']}", flush=True)


def compare(suite: Suite, target: Target, seconds: float, seed: int) -> dict[str, Any]:
    """Both runs of one seed, and their winners timed side by side."""
    names = list(CONTENDERS) if seed % 2 == 0 else list(reversed(CONTENDERS))
    results = {name: _run(suite, target, name, seconds, seed) for name in names}
    sums = _interleaved(suite, target, results)
    ratio = sums[GRADIENT] / sums[EQUAL] if sums else None
    runs = {name: _described(result) for name, result in results.items()}
    return {"seed": seed, "ratio": ratio, "weighted_sums_s": sums, "runs": runs}


def _run(suite: Suite, target: Target, name: str, seconds: float, seed: int) -> SuiteResult:
    """One run from an empty database."""
    allocation, share = CONTENDERS[name]
    with (
        closing(local_executor(target)) as executor,
        tempfile.TemporaryDirectory() as folder,
        Database(f"{folder}/tuning.db") as database,
    ):
        tuner = SuiteTuner(suite, target, database, executor, allocation=allocation, seed=seed)
        return tuner.run(TRIALS, share * seconds)


def _interleaved(suite: Suite, target: Target, results: dict[str, SuiteResult]) -> dict[str, float]:
    """The weighted sum of each, in seconds; none if a workload has no right kernel."""
    sums = dict.fromkeys(results, 0.0)
    with closing(local_executor(target)) as executor:
        for place, member in enumerate(suite.members):
            best = {name: result.tasks[place].best for name, result in results.items()}
            found = {name: m.schedule for name, m in best.items() if m is not None}
            latencies = _timed(member.workload, target, set(found.values()), executor)
            for name in results:
                if found.get(name) not in latencies:
                    return {}
                sums[name] += member.weight * latencies[found[name]]
    return sums


def _timed(
    workload: Workload, target: Target, schedules: set[Schedule], executor: Executor
) -> dict[Schedule, float]:
    """Latencies in seconds, of one comparison; of those that are right."""
    space, job = space_for(workload, target), Job(new_job_id(), workload, target, final=True)
    executor.submit(
        job, [Candidate(job, schedule, space.lower(schedule)) for schedule in schedules]
    )
    latencies: dict[Schedule, float] = {}
    while executor.pending(job):
        measured = [result.measurement for result in executor.results(None, job)]
        latencies |= {m.schedule: m.score for m in measured if m.ok and m.score is not None}
    return latencies


def _described(result: SuiteResult) -> dict[str, Any]:
    return {
        "value_s": result.value,
        "trials": result.trials,
        "seconds": result.seconds,
        "overhead": result.overhead,
        "history": result.history,
        "tasks": [
            {
                "name": task.member.label,
                "weight": task.member.weight,
                "trials": task.trials,
                "latency_s": task.latency,
                "schedule": None if task.best is None else task.best.schedule.to_json(),
            }
            for task in result.tasks
        ],
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.suites")
    parser.add_argument("--suite", default="bert-base", help="a shipped suite, or a file")
    parser.add_argument("--seconds", type=float, default=600.0, help="for the task scheduler")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
