"""Measure how well the cost model ranks recorded spaces of which it has seen a few random
schedules.

    python -m experiments.search.ranking FILE... [--rows 256,1024] [--draws 10] [--jobs N]
                                          [--out FILE]

See README.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.search.results import RESULTS, estimate, write
from tilewright.costmodel.dataset import Group
from tilewright.costmodel.evaluating.metrics import pairwise_accuracy, recall, top
from tilewright.scheduler.defaults import blended_model
from tilewright.scheduler.replay.forked import map_in_processes
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.recording import Recording

COMPARED = 2048  # schedules whose pairs are compared
NAMES = ("pairwise", "top1", "recall1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--rows", default="256,1024", help="random schedules that a model has seen")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=RESULTS / "ranking.json")
    options = parser.parse_args()
    recordings = [made for file in options.files for made in read_recordings(file, print)]
    results: dict[str, object] = {"draws": options.draws}
    for rows in map(int, options.rows.split(",")):
        found = np.array(
            [qualities(each, rows, options.draws, options.jobs) for each in recordings]
        )
        names = [recording.name for recording in recordings]
        results[f"{rows} rows"] = summary(found.mean(axis=0)) | {
            "spaces": dict(zip(names, map(summary, found), strict=True))
        }
        print(rows, summary(found.mean(axis=0)), flush=True)
        write(options.out, "experiments.search.ranking", results)


def qualities(recording: Recording, rows: int, draws: int, jobs: int = 1) -> np.ndarray:
    """[draws, ``NAMES``]: how well a model that saw ``rows`` random schedules ranks the others."""
    space = recording.space
    population = space.rows(list(recording.outcomes))
    latency = np.where(np.isinf(recording.seconds), np.nan, recording.seconds)

    def drawn(draw: int) -> Sequence[float]:
        order = np.random.default_rng(draw).permutation(len(population))
        known, rest = order[:rows], order[rows:]
        model = blended_model(space)
        model.fit_groups([Group(space, population[known], latency[known])])
        score = recording.seconds[rest].min() / recording.seconds[rest]
        return quality(model.predict(space, population[rest])[0], score)

    return np.array(list(map_in_processes(drawn, range(draws), jobs)))


def quality(predicted: np.ndarray, score: np.ndarray) -> Sequence[float]:
    """Return the figures of ``NAMES``; the pairs are those of the first ``COMPARED``."""
    return (
        pairwise_accuracy(predicted[:COMPARED], score[:COMPARED]),
        top(predicted, score, 1),
        recall(predicted, score, 0.01),
    )


def summary(found: np.ndarray) -> dict[str, object]:
    """Return the mean of each column over the draws, with its interval."""
    return {name: estimate(values) for name, values in zip(NAMES, found.T, strict=True)}


if __name__ == "__main__":
    main()
