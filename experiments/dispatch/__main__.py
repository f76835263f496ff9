"""Measure the regret of a dispatch table at held-out sizes; see README.md.

    python -m experiments.dispatch [--layer up|down] [--kernels 6] [--seconds 240] [--each 12]
        [--work FOLDER] [--out FILE]

Tunes the kernels of a table of a layer of GPT-2, then each held-out size by itself, and times the
two in turns. The databases stay in the folder, and what is tuned there is not tuned again.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from itertools import cycle
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from experiments.resuming import write
from tilewright import Database, Dispatch, Schedule, best, detect_target, query, tune, workload
from tilewright.scheduler.dispatch.making import tuned_table
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.timing import time_from_memory, times_from_memory
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.registry import space_for

PROFILE = "1:.3,2-8:.3,9-256:.3,257-4096:.1"
LAYERS = {
    "up": (768, 3072, 'matmul n=3072 k=768 epilogue="gelu(x + bias[n])"'),
    "down": (3072, 768, 'matmul n=768 k=3072 epilogue="x + bias[n]"'),
}
"""Depth, columns and workload of a layer."""
HELD_OUT = (
    *(1, 2, 3, 5, 7, 8, 11, 14, 19, 27, 37, 50, 71, 100, 139, 190, 250),
    *(333, 471, 650, 901, 1403, 2300, 3700),
)
WEIGHTS = 7
"""Copies of the weights, so that no call finds its own in the caches, as in a model. Their number
is odd, so that both contenders meet all of them."""
TRIALS = 24
"""Schedules that are measured of each held-out size at least, if time allows."""
LEAST_ROUNDS, MOST_ROUNDS = 8, 4000
SECONDS = 4.0
"""Seconds for which a size is timed, about."""


def held_out_shares(sizes: Iterable[int] = HELD_OUT, text: str = PROFILE) -> dict[int, float]:
    """Return the weight of each held-out size: its range's share, divided among those of the
    range."""
    found = {}
    for each in as_profile(text).ranges:
        within = [size for size in sizes if each.first <= size <= each.last]
        found |= {size: each.share / len(within) for size in within}
    return found


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean, the mean under the profile, the mean where gains count as none, and the
    worst of the measured regrets."""
    regrets = {row["m"]: row["ratio"] - 1 for row in rows}
    shares = held_out_shares(regrets)
    worst = max(regrets, key=regrets.__getitem__)
    return {
        "mean": mean(regrets.values()),
        "mean_of_profile": sum(shares[size] * regrets[size] for size in regrets),
        "mean_of_losses": mean(max(0.0, regret) for regret in regrets.values()),
        "worst": regrets[worst],
        "worst_at": worst,
    }


def in_turns(one: Callable[[int], object], other: Callable[[int], object]) -> tuple[float, float]:
    """Return the seconds of ``one``, and the median ratio of ``one`` to ``other``, by CPU time of
    this thread in alternating order. Each call is told which weights to take."""
    weights = cycle(range(WEIGHTS))
    times: list[tuple[float, float]] = []
    end = time.perf_counter() + SECONDS
    while len(times) < LEAST_ROUNDS or (len(times) < MOST_ROUNDS and time.perf_counter() < end):
        pair = [0.0, 0.0]
        order = ((0, one), (1, other))
        for place, call in order if len(times) % 2 else reversed(order):
            given = next(weights)
            began = time.thread_time()
            call(given)
            pair[place] = time.thread_time() - began
        times.append((pair[0], pair[1]))
    return median(each for each, _ in times), median(each / max(that, 1e-9) for each, that in times)


def measured(call: Dispatch, layer: str, size: int, database: Path) -> dict[str, Any]:
    """Time the table's kernels and the size's own, on equal arrays."""
    depth, columns, text = LAYERS[layer]
    own = own_function(f"{text} m={size}", database)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((size, depth), np.float32)
    bias = rng.standard_normal(columns, np.float32)
    b = [rng.standard_normal((depth, columns), np.float32) for _ in range(WEIGHTS)]
    out, that = (np.empty((size, columns), np.float32) for _ in range(2))
    call(a, b[0], bias, out=out)
    own(a, b[0], bias, out=that)
    assert np.allclose(out, that, rtol=1e-4, atol=1e-3)
    seconds, ratio = in_turns(
        lambda n: call(a, b[n], bias, out=out), lambda n: own(a, b[n], bias, out=that)
    )
    pieces = [(each.size, each.first, each.rows) for each in call.table.pieces(size)]
    return {
        "m": size,
        "seconds": seconds,
        "ratio": ratio,
        "pieces": len(pieces),
        "first": pieces[0],
    }


def own_function(text: str, database: Path) -> Callable[..., Any]:
    """Return the kernel of one size: of the few best on record, the fastest from memory."""
    work, target = workload(text), detect_target("cpu")
    assert isinstance(target, CpuTarget)
    with Database(database) as known:
        if not times_from_memory(work, target, known):
            time_from_memory(work, target, known)
        times = times_from_memory(work, target, known)
        if not times:
            return best(text, "cpu", known)
        space, key = space_for(work, target), min(times, key=times.__getitem__)
        return CpuFunction(space, Schedule.from_json(json.loads(key)), "measured")


def look_up_seconds(call: Dispatch) -> float:
    """Return the seconds of one ``choose`` by CPU time, the least of several batches."""
    sizes = np.random.default_rng(0).integers(1, call.table.last, 10_000).tolist()

    def batch(choose: Callable[[int], object]) -> float:
        began = time.thread_time()
        for size in sizes:
            choose(size)
        return time.thread_time() - began

    return min(batch(call.choose) for _ in range(30)) / len(sizes)


def main() -> None:
    options = _options()
    options.work.mkdir(parents=True, exist_ok=True)
    text = LAYERS[options.layer][2]
    known, held = options.work / f"{options.layer}.db", options.work / f"{options.layer}-held.db"
    table = tuned_table(text, PROFILE, str(known), options.kernels, seconds=options.seconds)
    if not held.exists():
        shutil.copy(known, held)
    for size in HELD_OUT:
        work = f"{text} m={size}"
        if query(work, "cpu", str(held)).trials < TRIALS:
            tune(work, "cpu", str(held), seconds=options.each)
    call = Dispatch(table, str(known))
    rows = []
    for size in HELD_OUT:
        row = measured(call, options.layer, size, held)
        rows.append(row | {"own_trials": query(f"{text} m={size}", "cpu", str(held)).trials})
        print(f"m={size}: {rows[-1]['ratio'] - 1:+.1%}, {rows[-1]['pieces']} pieces", flush=True)
    results = {
        "command": shlex.join(["python", "-m", "experiments.dispatch", *sys.argv[1:]]),
        "date": date.today().isoformat(),
        "load": os.getloadavg()[1],
        "target": table.target.summary,
        "layer": text,
        "kernels": [(each.size, each.seconds, each.provenance) for each in table.kernels],
        "expected": {"mean_of_profile": table.regret, "worst": table.worst, "at": table.worst_at},
        "measured": summary(rows),
        "look_up_seconds": look_up_seconds(call),
        "rows": rows,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write(options.out, results)
    print(json.dumps({name: results[name] for name in ("expected", "measured", "look_up_seconds")}))


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m experiments.dispatch")
    parser.add_argument("--layer", choices=LAYERS, default="up")
    parser.add_argument("--kernels", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=240, help="for the kernels of the table")
    parser.add_argument("--each", type=float, default=12, help="for each held-out size")
    parser.add_argument("--work", type=Path, default=Path("dispatch"))
    parser.add_argument("--out", type=Path, default=Path("dispatch.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
