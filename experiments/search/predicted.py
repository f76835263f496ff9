"""Compares predictions for schedules that the cost model has not seen with measurements.

    python -m experiments.search.predicted FILE... [--rows 256] [--points 200] [--out FILE]

See README.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.search.results import RESULTS
from tilewright.costmodel.dataset import Group
from tilewright.scheduler.defaults import blended_model
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.recording import Recording


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--rows", type=int, default=256, help="random schedules the model has seen")
    parser.add_argument("--points", type=int, default=200, help="random others of each space")
    parser.add_argument("--out", type=Path, default=RESULTS / "predicted.jsonl.gz")
    options = parser.parse_args()
    recordings = [made for file in options.files for made in read_recordings(file, print)]
    with gzip.GzipFile(options.out, "wb", mtime=0) as out:
        for each in recordings:
            found = predicted(each, options.rows, options.points)
            told = {"space": each.name, "rows": options.rows, **found}
            out.write(f"{json.dumps(told)}\n".encode())


def predicted(recording: Recording, rows: int, points: int) -> Mapping[str, Sequence[float]]:
    """Predict the ``score`` of each of ``points`` random schedules, with its standard deviation
    ``spread``, beside the score ``measured``: the least time of the ``rows`` schedules that the
    model has seen, over its own; 0 where it failed."""
    space = recording.space
    population = space.rows(list(recording.outcomes))
    order = np.random.default_rng(0).permutation(len(population))
    known, others = order[:rows], order[rows : rows + points]
    latency = np.where(np.isinf(recording.seconds), np.nan, recording.seconds)
    model = blended_model(space)
    model.fit_groups([Group(space, population[known], latency[known])])
    score, spread = model.predict(space, population[others])
    measured = np.nanmin(latency[known]) / recording.seconds[others]
    columns = {"score": score, "spread": spread, "measured": measured}
    return {name: np.round(values, 4).tolist() for name, values in columns.items()}


if __name__ == "__main__":
    main()
