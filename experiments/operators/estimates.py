"""Judge how well estimates rank what was timed on a GPU, without one; see README.md beside this
file.

    python -m experiments.operators.estimates [FILE ...] [--only PATTERN] [--untuned]

Of every case that results list schedules of, those timed and still valid are estimated by what
``best`` ranks predictions by where nothing was measured. A table says by family how many pairs of a
run whose times differ by a seventh and more are in the right order, how much longer than the
fastest of a run the one with the least estimate takes, and estimates over times. With
``--untuned``, a further table has each case where a prediction was timed: that one and the fastest,
with estimates as they are now, and whether another schedule is predicted now.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from experiments.operators.timed import Problem, Timed, problems, timed, valid
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.query import query
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target, target_from_json

RESULTS = Path(__file__).parents[1]
FILES = (
    "operators/results/*h200*.json",
    "models/results/models_h200*.json",
    "attention/results/h200*.json",
    "gpu_matmul/results/*.json",
)
DIFFERENT = 1.15
"""Times of which the longer is so many times the shorter, and more, are told apart."""
ALIKE = 1e-3
"""Estimates that differ by less are one."""


@dataclass(frozen=True)
class Judged:
    """Schedules of a case with ``seconds`` that they took in a run and were ``estimated`` to take;
    number ``predicted`` is what nobody tuned, if there is one."""

    problem: Problem
    schedules: Sequence[Schedule]
    seconds: np.ndarray
    estimated: np.ndarray
    predicted: int | None

    @cached_property
    def pairs(self) -> tuple[int, float]:
        """The number of pairs that are told apart, and of those in order, ties half."""
        fast, slow = np.nonzero(self.seconds[:, None] * DIFFERENT < self.seconds[None, :])
        ratio = np.log(self.estimated[slow] / self.estimated[fast])
        right = np.where(np.abs(ratio) < ALIKE, 0.5, ratio > 0)
        return len(right), float(right.sum())

    @property
    def first(self) -> float:
        """Time of the schedule with the least estimate over that of the fastest; of several the
        median."""
        least = self.estimated <= self.estimated.min() * (1 + ALIKE)
        return float(np.median(self.seconds[least]) / self.seconds.min())

    @property
    def over(self) -> float:
        """Estimates over times, geometric mean."""
        return float(np.exp(np.mean(np.log(self.estimated / self.seconds))))


def judge(problem: Problem, times: Timed, target: Target) -> Judged | None:
    """Judge the estimates of a case by its times; None where nothing valid has an estimate."""
    space = space_for(problem.workload, target)
    now = {schedule: valid(schedule, space) for schedule in times.seconds}
    found = {new: times.seconds[old] for old, new in now.items() if new is not None}
    estimated = roofline(target).latency(space, space.rows(list(found)))
    seconds, known = np.array(list(found.values())), np.isfinite(estimated)
    if not known.any():
        return None
    schedules = [each for each, is_known in zip(found, known, strict=True) if is_known]
    first = now.get(times.untuned) if times.untuned else None
    predicted = schedules.index(first) if first in schedules else None
    return Judged(problem, schedules, seconds[known], estimated[known], predicted)


def families(cases: Iterable[Judged]) -> list[str]:
    """Return a table of Markdown, a line for each family and one for all."""
    found: dict[str, list[Judged]] = {}
    for case in cases:
        found.setdefault(case.problem.family, []).append(case)
    every = [case for each in found.values() for case in each]
    head = "| family | cases | schedules | pairs | in order | first | worst | estimated |"
    lines = [head, "| --- " * 8 + "|"]
    return lines + [_line(name, each) for name, each in [*found.items(), ("all", every)] if each]


def _line(name: str, cases: Sequence[Judged]) -> str:
    count, right = (sum(each) for each in zip(*(case.pairs for case in cases), strict=True))
    first = [case.first for case in cases]
    names = {case.problem.name for case in cases}
    cells = [name, str(len(names)), str(sum(len(case.seconds) for case in cases)), str(count)]
    cells.append(f"{right / count:.2f}" if count else "-")
    cells += [f"{statistics.geometric_mean(first):.2f}", f"{max(first):.2f}"]
    cells.append(f"{statistics.geometric_mean(case.over for case in cases):.2f}")
    return f"| {' | '.join(cells)} |"


def predictions(cases: Iterable[Judged], target: Target) -> list[str]:
    """Return a table of Markdown: cases of which a prediction was timed, the slowest first."""
    head = (
        "| case | share | fastest, us | estimated | predicted, us | estimated | now | estimated |"
    )
    lines = [head, "| --- " * 8 + "|"]
    timed_ones = [case for case in cases if case.predicted is not None]
    return lines + [_prediction(case, target) for case in sorted(timed_ones, key=_share)]


def _share(case: Judged) -> float:
    """Return how fast the prediction is, as a share of the fastest."""
    return float(case.seconds.min() / case.seconds[case.predicted])


def _prediction(case: Judged, target: Target) -> str:
    best, at = int(np.argmin(case.seconds)), case.predicted
    assert at is not None
    answer = query(case.problem.workload, target, database=None)
    now = "the same" if answer.schedule == case.schedules[at] else answer.schedule.template
    times = (case.seconds[best], case.estimated[best], case.seconds[at], case.estimated[at])
    cells = [case.problem.name, f"{_share(case):.2f}", *(f"{1e6 * t:.1f}" for t in times), now]
    cells.append("-" if answer.latency is None else f"{1e6 * answer.latency:.1f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    options = _options()
    paths = options.files or [p for glob in FILES for p in sorted(RESULTS.glob(glob))]
    target, known = _target(paths), problems()
    found = (each for path in paths for each in timed(json.loads(path.read_text())))
    wanted = (t for t in found if t.name in known and options.only.search(t.name))
    judged = (judge(known[each.name], each, target) for each in wanted)
    cases = [case for case in judged if case is not None]
    print("\n".join(families(cases)))
    if options.untuned:
        print("", *predictions(cases, target), sep="\n")


def _target(paths: Sequence[Path]) -> Target:
    """Return the target of the first results that name one."""
    read = (json.loads(path.read_text()) for path in paths)
    return target_from_json(next(islice((r["target"] for r in read if "target" in r), 1)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.operators.estimates")
    parser.add_argument("files", type=Path, nargs="*", help="results; all of an H200 if none")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="cases' names")
    parser.add_argument("--untuned", action="store_true", help="predictions that were timed, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
