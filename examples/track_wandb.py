"""Write a run to Weights & Biases, offline: a callback notes each trial.

It needs wandb. `wandb sync wandb/offline-run-*` sends it to a server.
"""

import os

import wandb

from tilewright import Study, Trial, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "32"))

with wandb.init(project="tilewright", mode="offline", dir=".") as run:

    def note(study: Study, trial: Trial) -> None:
        """Write one trial."""
        values = {"origin": trial.origin, "error": trial.error}
        if trial.latency is not None:
            values["latency_us"] = 1e6 * trial.latency
        run.log(values, step=trial.number)

    result = tune("softmax r=64 c=100", "cpu", trials=TRIALS, seconds=60, callbacks=[note])
    if result.best is not None:
        run.summary.update(dict(result.best.schedule.values))
print(f"{result.trials} trials in {run.dir}")
