"""Write a run to TensorBoard: a callback notes each trial, and the best so far.

It needs tensorboardX. `tensorboard --logdir runs` shows it.
"""

import os

from tensorboardX import SummaryWriter

from tilewright import Study, Trial, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "32"))

with SummaryWriter("runs") as writer:

    def note(study: Study, trial: Trial) -> None:
        """Write one trial."""
        if trial.latency is not None:
            writer.add_scalar("latency_us", 1e6 * trial.latency, trial.number)
        if study.board.best is not None:
            writer.add_scalar("best_us", 1e6 * study.board.best.score, trial.number)
        writer.add_text("schedule", f"{trial.origin}: {trial.schedule}", trial.number)

    result = tune("softmax r=64 c=100", "cpu", trials=TRIALS, seconds=60, callbacks=[note])
print(f"{result.trials} trials in runs/: {os.listdir('runs')}")
