"""Tune on a Ray cluster: here one of this machine alone, which ends with the program.

Needs the extra ``ray``. ``RayExecutor("10.0.0.1:6379")`` takes the workers of a cluster that runs
already. Its workers build and measure; only this process writes to the database.
"""

import os
from contextlib import closing

from tilewright import tune
from tilewright.measure.cluster.executor import RayExecutor

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "48"))

with closing(RayExecutor()) as executor:
    print("devices that measure side by side:", executor.devices)
    for columns in (64, 96):
        result = tune(
            f"softmax r=64 c={columns}",
            "cpu",
            "tuning.db",
            trials=TRIALS,
            seconds=60,
            executor=executor,
        )
        print(f"{columns} columns:", result.best.schedule)
