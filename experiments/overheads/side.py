"""Builds candidates, and runs some of them whenever a line says which; for ``verification.py``.

It uses nothing but what the tree beside which it runs has had since the first commits.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.cpu.runner import CRunner
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule

try:
    from tilewright.measure.records.measurement import Candidate, Job
except ImportError:  # where they were earlier
    from tilewright.measure.measurement import Candidate, Job


def main() -> None:
    """Answer each line of standard input with one of standard output."""
    asked = json.loads(input())
    job = Job("cost", workload(asked["workload"]), detect_cpu(1))
    space = space_for(job.workload, job.target)
    builder, runner = CBuilder(job.target, jobs=2), CRunner(job.target)
    schedules = map(Schedule.from_json, asked["schedules"])
    known = [schedule in space for schedule in map(Schedule.from_json, asked["schedules"])]
    candidates = [
        Candidate(job, schedule, space.lower(schedule))
        for schedule, fits in zip(schedules, known, strict=True)
        if fits
    ]
    built = iter(builder.build(candidates))
    every = [next(built) if fits else None for fits in known]
    print(json.dumps([b is not None and b.binary is not None for b in every]), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(runner, job, [every[i] for i in json.loads(line)])), flush=True)
    runner.close()
    builder.close()


def run(runner: CRunner, job: Job, built: list[Any]) -> dict[str, Any]:
    """Return how long it took to run them, and how fast each was."""
    start = time.perf_counter()
    measured = runner.run(job, built)
    seconds = time.perf_counter() - start
    assert all(m.score for m in measured), [m.error_text for m in measured]
    return {"seconds": seconds, "scores": [m.score for m in measured]}


if __name__ == "__main__":
    main()
