"""The task scheduler and equal shares on one suite, and their winners against each other."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import Executor as Processes
from contextlib import closing
from typing import Any

from measure.database import Database
from measure.interfaces import Executor
from measure.records.measurement import Candidate, Job, new_job_id
from scheduler.defaults import local_executor
from scheduler.suites.allocation import Allocation, by_gradient, in_turn
from scheduler.suites.progress import SuiteResult
from scheduler.suites.suite import Suite
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


def compare(
    pool: Processes, suite: Suite, threads: int, seconds: float, seed: int, trials: int = TRIALS
) -> dict[str, Any]:
    """Both runs of one seed, and their winners timed in turns, each by a process of ``pool``."""
    names = list(CONTENDERS) if seed % 2 == 0 else list(reversed(CONTENDERS))
    begun = {name: pool.submit(_run, suite, threads, name, seconds, seed, trials) for name in names}
    runs = {name: run.result() for name, run in begun.items()}
    sums = pool.submit(_interleaved, suite, threads, runs).result()
    ratio = sums[GRADIENT] / sums[EQUAL] if sums else None
    return {"seed": seed, "ratio": ratio, "weighted_sums_s": sums, "runs": runs}


def _run(
    suite: Suite, threads: int, name: str, seconds: float, seed: int, trials: int
) -> dict[str, Any]:
    """One run from an empty database."""
    allocation, share = CONTENDERS[name]
    target = detect_target("cpu", threads)
    with (
        closing(local_executor(target)) as executor,
        tempfile.TemporaryDirectory() as folder,
        Database(f"{folder}/tuning.db") as database,
    ):
        tuner = SuiteTuner(suite, target, database, executor, allocation=allocation, seed=seed)
        return _described(tuner.run(trials, share * seconds))


def _interleaved(
    suite: Suite, threads: int, runs: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """The weighted sum of each, in seconds; none if a workload has no right kernel."""
    target = detect_target("cpu", threads)
    sums = dict.fromkeys(runs, 0.0)
    with closing(local_executor(target)) as executor:
        for place, member in enumerate(suite.members):
            best = {name: run["tasks"][place]["schedule"] for name, run in runs.items()}
            found = {name: Schedule.from_json(each) for name, each in best.items() if each}
            latencies = _timed(member.workload, target, set(found.values()), executor)
            for name in runs:
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
        "target": result.target.summary,
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
