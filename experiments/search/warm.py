"""Searches that begin with what was measured of the same kernel on other devices, and without.

    python -m experiments.search.warm FILE... [--rows 1024] [--repeats 10] [--jobs N] [--out FILE]

See README.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from experiments.search.results import RESULTS, estimate, write
from tilewright.costmodel.dataset import Group
from tilewright.costmodel.predictors.ensemble import ensemble
from tilewright.scheduler.defaults import default_search
from tilewright.scheduler.replay.forked import map_in_processes
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.recording import Recording
from tilewright.scheduler.replay.run import replay
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.tuning.transfer import LEADERS, Transfer
from tilewright.spaces.algebra.sequences import in_turn

TRIALS = (16, 64)
BATCH = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--rows", type=int, default=1024, help="random schedules of each sibling")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=RESULTS / "warm.json")
    options = parser.parse_args()
    recordings = [made for file in options.files for made in read_recordings(file, print)]
    spaces: dict[str, object] = {}
    both = []
    for recording in recordings:
        siblings = [other for other in recordings if is_sibling(other, recording)]
        if not siblings:
            continue
        one = partial(pair, recording, siblings, options.rows)
        both.append(np.array(list(map_in_processes(one, range(options.repeats), options.jobs))))
        spaces[recording.name] = summary(both[-1], TRIALS)
        print(recording.name, spaces[recording.name], flush=True)
        mean = summary(np.mean(both, axis=0), TRIALS)
        told = {"rows": options.rows, "repeats": options.repeats, "batch": BATCH}
        write(options.out, "experiments.search.warm", {**told, "mean": mean, "spaces": spaces})


def is_sibling(other: Recording, recording: Recording) -> bool:
    """Tell whether ``other`` is of the same kernel on another device."""
    there, here = other.space, recording.space
    return there.workload == here.workload and there.target != here.target


def pair(
    recording: Recording, siblings: Sequence[Recording], rows: int, seed: int
) -> Sequence[Sequence[float]]:
    """[cold and warm, ``TRIALS``]: the best speed so far, of the fastest schedule's."""
    known = transferred(recording, siblings, rows, seed)
    return [
        fractions(recording, default_search(recording.space, seed)),
        fractions(recording, default_search(recording.space, seed, known)),
    ]


def transferred(
    recording: Recording, siblings: Sequence[Recording], rows: int, seed: int
) -> Transfer:
    """Return the transfer of a search that knows so many random rows of each sibling."""
    generator = np.random.default_rng([seed, 1])
    groups, starters = [], []
    for sibling in siblings:
        schedules = list(sibling.outcomes)
        drawn = generator.permutation(len(schedules))[:rows]
        latency = np.where(np.isinf(sibling.seconds), np.nan, sibling.seconds)[drawn]
        known = sibling.space.rows([schedules[i] for i in drawn])
        groups.append(Group(sibling.space, known, latency))
        best = drawn[np.argsort(sibling.seconds[drawn], kind="stable")[:LEADERS]]
        starters.append([recording.space.nearest(schedules[i], generator) for i in best])
    model = ensemble(groups)
    assert model is not None, "a sibling has fewer rows than a model needs"
    return Transfer(model, in_turn(starters), same_shape=True)


def fractions(recording: Recording, search: Search) -> Sequence[float]:
    """Return the best speed after each of ``TRIALS``, of the fastest schedule's."""
    seconds = replay(recording, search, TRIALS[-1], BATCH).seconds
    return [recording.optimum / float(seconds[:trials].min()) for trials in TRIALS]


def summary(found: np.ndarray, trials: Sequence[int]) -> dict[str, object]:
    """Means over repeats [repeats, cold and warm, trials] and of the gain seed by seed, with
    intervals."""
    cold, warm = found[:, 0], found[:, 1]
    named = {"cold": cold, "warm": warm, "gain": warm - cold}
    return {
        name: {str(n): estimate(values[:, i]) for i, n in enumerate(trials)}
        for name, values in named.items()
    }


if __name__ == "__main__":
    main()
