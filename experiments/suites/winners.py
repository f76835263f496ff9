"""Describes the results of runs of a suite as plain data, and times winners in turns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from statistics import median, stdev
from typing import Any

from experiments.recorded import recorded_schedule
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.scheduler.defaults import local_executor
from tilewright.scheduler.suites.suite import Suite
from tilewright.scheduler.tuning.events import SuiteResult
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

Runs = Mapping[str, Mapping[str, Any]]
"""Runs as :func:`described` gives them, by name."""

Latencies = Sequence[Mapping[str, float]]
"""Seconds of each workload, by the names of the runs."""


def compared_winners(suite: Suite, target: Target, runs: Runs, times: int) -> list[Latencies]:
    """Compare the winners of ``runs`` so many times. All winners of a workload are timed in turns,
    and each workload is compared once before any is compared again."""
    found = [_winners(runs, place) for place in range(len(suite.members))]
    pairs = list(zip(suite.members, found, strict=True))

    def compared(executor: Executor) -> Latencies:
        timed = [_timed(m.workload, target, set(own.values()), executor) for m, own in pairs]
        return [
            {name: known[schedule] for name, schedule in own.items() if schedule in known}
            for own, known in zip(found, timed, strict=True)
        ]

    with closing(local_executor(target)) as executor:
        return [compared(executor) for _ in range(times)]


def medians(compared: Sequence[Latencies]) -> list[dict[str, float]]:
    """Return the median over all comparisons, by workload, for runs whose winner was always
    right."""
    return [
        {name: median(one[name] for one in own) for name in own[0] if all(name in o for o in own)}
        for own in zip(*compared, strict=True)
    ]


def standard_error(of: Sequence[float]) -> float | None:
    """Return the standard error of the median; None for fewer than two. A mean's is a quarter
    smaller."""
    return 1.25 * stdev(of) / len(of) ** 0.5 if len(of) > 1 else None


def _winners(runs: Runs, place: int) -> dict[str, Schedule]:
    """Return the winners of the runs that have one."""
    best = {name: run["tasks"][place]["schedule"] for name, run in runs.items()}
    return {name: recorded_schedule(each) for name, each in best.items() if each}


def weighted_sums(suite: Suite, runs: Collection[str], latencies: Latencies) -> dict[str, float]:
    """Return the weighted sum of each run, in seconds; none if one of them lacks a workload."""
    if any(name not in known for name in runs for known in latencies):
        return {}
    pairs = list(zip(suite.members, latencies, strict=True))
    return {name: sum(member.weight * known[name] for member, known in pairs) for name in runs}


def _timed(
    workload: Workload, target: Target, schedules: set[Schedule], executor: Executor
) -> dict[Schedule, float]:
    """Return the latencies in seconds, of one comparison; of those that are right."""
    space, job = space_for(workload, target), Job(new_job_id(), workload, target, final=True)
    executor.submit(
        job, [Candidate(job, schedule, space.lower(schedule)) for schedule in schedules]
    )
    latencies: dict[Schedule, float] = {}
    while executor.pending(job):
        measured = [result.measurement for result in executor.results(None, job)]
        latencies |= {m.schedule: m.score for m in measured if m.ok and m.score is not None}
    return latencies


def described(result: SuiteResult) -> dict[str, Any]:
    """Return a result as JSON values."""
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
