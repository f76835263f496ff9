"""Compare open kernels of a GPU with kernels of fixed sizes, in turns. Needs a GPU; see README.md.

    python -m experiments.dispatch.device [--target cuda] [--only PATTERN] [--minutes 9]
        [--out FILE]

For each size of a case, the fastest of the first few predicted schedules is taken, of the templates
that have open kernels. Its open kernel is timed beside its fixed one at this size, and at three
quarters of it beside the fastest fixed kernel of so many rows. All kernels are verified. A run goes
on where an earlier one ended.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from experiments.resuming import remaining, resume, write
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.scheduler.defaults import local_executor
from tilewright.scheduler.dispatch.family import Family, family_of
from tilewright.scheduler.dispatch.measuring import measured
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.predictions import ranked
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, as_target

OUT = Path(__file__).with_name("results") / "device" / "h200.json"
SIZES = (4, 8, 16, 64, 128, 256, 512, 1024, 2048, 4096)
TRIED = 12
"""Predicted schedules of a size that are measured."""


@dataclass(frozen=True)
class Case:
    """A workload with an open ``axis`` and its ``size``."""

    name: str
    text: str
    size: int
    axis: str = "m"


PRODUCTS = {
    "bfloat16 4096x4096": "matmul n=4096 k=4096 dtype=bfloat16 b=col",
    "bfloat16 up": 'matmul n=3072 k=768 dtype=bfloat16 epilogue="gelu(x + bias[n])"',
    "float32 1024x1024": "matmul n=1024 k=1024",
}
ROWS = {
    "softmax of 4096": "softmax c=4096 dtype=bfloat16",
    "rmsnorm of 4096": "rmsnorm c=4096 dtype=bfloat16",
}
ATTENTION = "attention h=32 kv=8 i=512 j=512 d=128 dtype=bfloat16"
CASES = (
    *(Case(f"{name}, {m}", text, m) for name, text in PRODUCTS.items() for m in SIZES),
    *(Case(f"{name}, {r}", text, r, "r") for name, text in ROWS.items() for r in SIZES[::2]),
    *(Case(f"attention, {b}", ATTENTION, b, "b") for b in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24)),
)


def open_space(family: Family, size: int, target: Target) -> Space | None:
    """Return the space of the templates that have open kernels; None if there are none."""
    whole = space_for(family.at(size), target)
    own = {each: Space(whole.workload, target, [each]) for each in whole.templates.values()}
    found = [
        template
        for template, space in own.items()
        if any(space.why_not_open(each, family.own_axis) is None for each, _ in ranked(space))
    ]
    return Space(whole.workload, target, found) if found else None


def fastest(space: Space, axis: str, executor: Executor) -> Schedule | None:
    """Return the fastest of the few best predicted schedules that have open kernels."""
    tried = [each for each, _ in ranked(space) if space.why_not_open(each, axis) is None][:TRIED]
    job = Job(new_job_id(), space.workload, space.target)
    seconds = measured(job, {each: space.lower(each) for each in tried}, executor)
    return min(seconds, key=lambda each: seconds[each]) if seconds else None


def in_turns(
    space: Space, kernels: Mapping[str, tuple[Schedule, Kernel]], executor: Executor
) -> dict[str, float]:
    """Return the seconds of kernels of a workload by name, in a final comparison; none of those
    that fail."""
    job = Job(new_job_id(), space.workload, space.target, final=True)
    names = {kernel.call.entry: name for name, (_, kernel) in kernels.items()}
    executor.submit(job, [Candidate(job, *each) for each in kernels.values()])
    found = {}
    while executor.pending(job):
        for result in executor.results(1.0, job):
            if result.measurement.score is not None:
                found[names[result.candidate.kernel.call.entry]] = result.measurement.score
    return found


def compared(case: Case, target: Target, executor: Executor) -> dict[str, Any]:
    """Return the schedules of a case, and the seconds of its open and fixed kernels."""
    family = family_of(case.text, case.axis, as_profile(f"1-{case.size}:1"))
    space = open_space(family, case.size, target)
    schedule = fastest(space, case.axis, executor) if space else None
    if space is None or schedule is None:
        return {"refused": "no open kernel was right"}
    opened, fewer = space.lower_open(schedule, case.axis), max(1, case.size * 3 // 4)
    same = {"open": (schedule, opened), "fixed": (schedule, space.lower(schedule))}
    row: dict[str, Any] = {"schedule": schedule.to_json(), "size": case.size, "fewer": fewer}
    row["seconds"] = in_turns(space, same, executor)
    smaller = open_space(family, fewer, target)
    best = fastest(smaller, case.axis, executor) if smaller else None
    if smaller is not None and best is not None:
        own = {"open": (schedule, opened.at(fewer)), "fixed": (best, smaller.lower(best))}
        row |= {"schedule_of_fewer": best.to_json()}
        row["seconds_of_fewer"] = in_turns(smaller, own, executor)
    return row


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean and the largest time of open kernels as a multiple of fixed ones."""
    found: dict[str, Any] = {}
    for what in ("seconds", "seconds_of_fewer"):
        pairs = [row[what] for row in rows if len(row.get(what, ())) == 2]
        ratios = [pair["open"] / pair["fixed"] for pair in pairs]
        if ratios:
            found[what] = {
                "mean": geometric_mean(ratios),
                "worst": max(ratios),
                "cases": len(ratios),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    target = as_target(asked.target)
    results = resume(asked.out, "experiments.dispatch.device", {"target": target.summary})
    end = time.monotonic() + 60 * asked.minutes
    with closing(local_executor(target)) as executor:
        for case in remaining(CASES, results, asked.only, end):
            results["cases"][case.name] = compared(case, target, executor)
            results["summary"] = summary([*results["cases"].values()])
            write(asked.out, results)
            print(case.name, results["cases"][case.name].get("seconds"), flush=True)
    print(results.get("summary"))


if __name__ == "__main__":
    main()
