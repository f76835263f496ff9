"""Compare searches on a space that was measured before, without measuring anything again.

The recording is an export of ours here; cache files of Kernel Tuner and T4 results files will do
as well. Each search is the real one, and is told the recorded times.
"""

import os
from pathlib import Path
from statistics import mean

from tilewright import Database, tune
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.run import replay
from tilewright.scheduler.strategies.registry import factory

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "64"))
REPEATS = 5

tune("softmax r=64 c=256", "cpu", "tuning.db", trials=TRIALS, seconds=60, search="random")
with Database("tuning.db") as database:
    database.export_jsonl("log.jsonl")

[recording] = read_recordings(Path("log.jsonl"), report=print)
print(f"{len(recording.outcomes)} schedules, the fastest takes {recording.optimum * 1e6:.2f} us")

allowed = max(1, len(recording.outcomes) // 4)
for name in ("evolutionary", "genetic", "random"):
    runs = [
        replay(recording, factory(name)(recording.space, seed), allowed, batch=4)
        for seed in range(REPEATS)
    ]
    shares = [recording.optimum / run.seconds.min() for run in runs]
    print(f"{name:12} reaches {mean(shares):.0%} of the optimum in {allowed} trials, on average")
