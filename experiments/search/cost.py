"""Measures the share of a run that the search and its cost model take, where much is known.

    python -m experiments.search.cost [--rows 1000] [--trials 256] [--batch 8,64] [--out FILE]

Nothing is measured but the search itself: its outcomes are the roofline's times random factors. See
README.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.search.results import RESULTS, write
from tilewright.costmodel.dataset import Group
from tilewright.costmodel.shortlist import shortlisted
from tilewright.scheduler.defaults import blended_model, default_search, only
from tilewright.scheduler.machine import roofline
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import detect_target

WORKLOAD = "matmul m=128 n=768 k=3072"
CANDIDATES = 100_000
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000, help="outcomes known at the start")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--batch", default="8,64")
    parser.add_argument("--out", type=Path, default=RESULTS / "cost.json")
    options = parser.parse_args()
    target = detect_target("cpu", 1)
    space = space_for(workload(WORKLOAD), target)
    per_trial = {
        batch: round(1e3 * searched(space, options.rows, options.trials, int(batch)), 3)
        for batch in options.batch.split(",")
    }
    told = {"workload": WORKLOAD, "target": target.summary, "rows": options.rows}
    told |= {"trials": options.trials, "milliseconds_a_trial": per_trial}
    told |= {"candidates": CANDIDATES, "scoring_seconds": round(scored(space, options.rows), 4)}
    write(options.out, "experiments.search.cost", told)
    print(told)


def searched(space: Space, rows: int, trials: int, batch: int) -> float:
    """Return the seconds of asking, telling and training for each of ``trials`` after ``rows``
    outcomes."""
    search = default_search(space, seed=0)
    generator = np.random.default_rng(0)
    search.tell(outcomes(space, space.sample(generator, rows)))
    search.ask(1)  # trains on all that
    spent, done = 0.0, 0
    while done < trials:
        began = time.perf_counter()
        asked = [proposed.schedule for proposed in search.ask(min(batch, trials - done))]
        spent += time.perf_counter() - began
        results = outcomes(space, space.rows(asked))
        began = time.perf_counter()
        search.tell(results)
        spent += time.perf_counter() - began
        done += len(asked)
    return spent / trials


def outcomes(space: Space, population: Population) -> Sequence[tuple[Schedule, float]]:
    """A made-up latency of each schedule, the same whenever it is asked for."""
    return list(zip(map(space.schedule, population), latencies(space, population), strict=True))


def latencies(space: Space, population: Population) -> Sequence[float]:
    """Return the roofline's, times a factor from the schedule alone."""
    estimate = roofline(space.target, only(space)).latency(space, population)
    noise = [np.random.default_rng(row).lognormal(sigma=0.3) for row in population.tolist()]
    return (estimate * np.array(noise)).tolist()


def scored(space: Space, rows: int) -> float:
    """Return the seconds to draft and rank ``CANDIDATES`` schedules by a model of so many rows,
    features included: the median of some."""
    generator = np.random.default_rng(1)
    known = space.sample(generator, rows)
    model = blended_model(space)
    model.fit_groups([Group(space, known, np.array(latencies(space, known)))])
    draft = roofline(space.target, only(space))
    taken = []
    for _ in range(REPEATS):
        candidates = space.sample(generator, CANDIDATES)
        began = time.perf_counter()
        shortlisted(space, candidates, draft, model)
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


if __name__ == "__main__":
    main()
