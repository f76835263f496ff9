"""Draw the course of a run: each trial, and the fastest kernel so far. Saves ``course.svg``.

Needs the extras ``data`` and ``plot``.
"""

import os

import matplotlib

matplotlib.use("svg")  # draws into files: no window is needed
import matplotlib.pyplot as plt

from tilewright import trials, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "64"))

tune("matmul m=96 n=96 k=96", "cpu", "tuning.db", trials=TRIALS, seconds=60)
table = trials("tuning.db")
# After the search the fastest few are compared again, which is not part of its course.
course = table[(table["round"] == "search") & (table["status"] == "ok")].reset_index()
microseconds = course["latency_s"].astype(float) * 1e6

figure, axes = plt.subplots(figsize=(7, 4))
for origin, place in course.groupby("origin").groups.items():
    axes.plot(place, microseconds[place], "o", markersize=4, label=origin)
axes.step(course.index, microseconds.cummin(), where="post", color="black", label="fastest so far")
axes.set(xlabel="trial", ylabel="latency in us", title="matmul m=96 n=96 k=96")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
figure.savefig("course.svg", bbox_inches="tight")
print("course.svg:", len(course), "trials, fastest", f"{microseconds.min():.2f} us")
