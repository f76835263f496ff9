"""Train a cost model from a log of measurements, and let it rank a shape that nobody tuned.

A log is an export: one JSON line for each measurement. A model is a JSON file, too. Nothing of
either is executed when it is read.
"""

import os
from pathlib import Path

from tilewright import Database, query, tune
from tilewright.scheduler.training import train

TRIALS = max(8, int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "48")))

# Random schedules make a log that no model has biased.
for shape in ("m=48 n=64 k=64", "m=64 n=96 k=32"):
    tune(f"matmul {shape}", "cpu", "tuning.db", trials=TRIALS, seconds=60, search="random")
with Database("tuning.db") as database:
    print("measurements in the log:", database.export_jsonl("log.jsonl"))

# Anybody who has the log can train from it, on another machine as well.
with Database("from_log.db") as database:
    database.import_jsonl("log.jsonl")
    report = train(database, Path("model.json"))
print(f"trained on {report.schedules} schedules of {report.workloads} workloads")

answer = query("matmul m=96 n=96 k=96", "cpu", None, model="model.json")
print(answer.provenance, answer.schedule)
