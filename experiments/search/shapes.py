"""Searches of our own CPU spaces that begin with what was measured of other shapes, and without.

    python -m experiments.search.shapes [--logs FILE] [--repeats 40] [--jobs N] [--out FILE]

See README.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from experiments.search.results import RESULTS, write
from experiments.search.subspaces import SUBSPACES
from experiments.search.warm import summary
from tilewright.measure.database import Database
from tilewright.scheduler.defaults import default_search
from tilewright.scheduler.replay.forked import map_in_processes
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.recording import Recording
from tilewright.scheduler.replay.run import replay
from tilewright.scheduler.tuning.transfer import Transfer, transfer
from tilewright.spaces.errors import InputError

TRIALS = (16, 48, 64, 128)
BATCH = 8
LOGS = RESULTS / "shapes.jsonl.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path, default=LOGS, help="an export of other shapes")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=RESULTS / "shapes.json")
    options = parser.parse_args()
    spaces: dict[str, object] = {}
    both = []
    records = [RESULTS / f"{name}.jsonl.gz" for name in SUBSPACES]
    for recording in (made for file in records for made in read_recordings(file, print)):
        one = partial(regrets, recording, of_other_shapes(recording, options.logs))
        both.append(np.array(list(map_in_processes(one, range(options.repeats), options.jobs))))
        spaces[str(recording.space.workload)] = summary(both[-1], TRIALS)
        print(recording.name, spaces[str(recording.space.workload)], flush=True)
    told = {
        "repeats": options.repeats,
        "batch": BATCH,
        "mean": summary(np.mean(both, axis=0), TRIALS),
    }
    write(options.out, "experiments.search.shapes", {**told, "spaces": spaces})


def of_other_shapes(recording: Recording, logs: Path) -> Transfer:
    """Return the transfer that a run of ``tune`` begins with if its database holds ``logs``.

    :class:`InputError` if these are of the recorded shape, or say too little of others.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Database(Path(folder) / "tuning.db") as database,
    ):
        database.import_jsonl(logs, print)
        if recording.space.workload in [workload for workload, _ in database.pairs()]:
            raise InputError(f"{logs} has records of {recording.space.workload}, which is replayed")
        known = transfer(recording.space, database)
    if known is None:
        raise InputError(f"{logs} says too little of other shapes than {recording.space.workload}")
    return known


def regrets(recording: Recording, known: Transfer, seed: int) -> Sequence[Sequence[float]]:
    """[cold and warm, ``TRIALS``]: how much longer the best so far takes than the fastest."""
    points = [trials - 1 for trials in TRIALS]
    made = (
        replay(recording, default_search(recording.space, seed, given), TRIALS[-1], BATCH).seconds
        for given in (None, known)
    )
    return [np.minimum.accumulate(each)[points] / recording.optimum - 1.0 for each in made]


if __name__ == "__main__":
    main()
