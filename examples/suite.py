"""Tune the layers of a small network together, as a suite.

Each workload has a weight: how often it is called. Trials go to the workload where the weighted
sum of latencies gains most by them, and all workloads share a cost model.
"""

import os
from pathlib import Path

from tilewright import tune_suite

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "64"))

Path("layers.toml").write_text("""
[[workloads]]
name = "up"
operator = "matmul"
parameters = { m = 16, n = 256, k = 64, epilogue = "gelu(x + bias[n])" }
weight = 12

[[workloads]]
name = "down"
operator = "matmul"
parameters = { m = 16, n = 64, k = 256, epilogue = "x + bias[n] + residual[m,n]" }
weight = 12

[[workloads]]
name = "norm"
operator = "layernorm"
parameters = { r = 16, c = 64 }
weight = 25
""")

result = tune_suite("layers.toml", database="tuning.db", trials=TRIALS, seconds=90)
for task in result.tasks:
    print(f"{task.member.label:6} {task.best.score * 1e6:8.2f} us  {task.best.schedule}")
