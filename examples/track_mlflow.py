"""Write a run to MLflow: a callback notes each trial; the best becomes the run's parameters.

It needs mlflow or mlflow-skinny. The files go to the folder mlruns, which `mlflow ui` shows.
"""

import os
from pathlib import Path

os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

import mlflow

from tilewright import Study, Trial, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "32"))


def note(study: Study, trial: Trial) -> None:
    """Write one trial."""
    failed = float(trial.latency is None)
    mlflow.log_metric("failed", failed, step=trial.number)
    if trial.latency is not None:
        mlflow.log_metric("latency_us", 1e6 * trial.latency, step=trial.number)


mlflow.set_tracking_uri(Path("mlruns").resolve().as_uri())
mlflow.set_experiment("tilewright")
with mlflow.start_run() as run:
    result = tune("softmax r=64 c=100", "cpu", trials=TRIALS, seconds=60, callbacks=[note])
    if result.best is not None:
        mlflow.log_params(dict(result.best.schedule.values))
print(f"{result.trials} trials in mlruns/, run {run.info.run_id}")
