"""Products with weights packed once, beside the same with weights as they are; see README.md."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from experiments.resuming import write_run
from experiments.turns import medians, ratio
from tilewright import Target, best, detect_target, pack, tune

OUT = Path(__file__).parent / "results"
SHAPES = ("1x3072x768", "1x4096x4096", "16x3072x768", "16x4096x4096", "32x3072x768")
SHAPES += ("64x4096x4096", "128x3072x768", "128x768x3072")
EPILOGUE = 'epilogue="gelu(x + bias[n])"'
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "col": lambda weight: weight.T,
    "row": lambda weight: np.ascontiguousarray(weight.T),
    "packed": pack,
}
"""The orders of the weight by name, made of ``[columns, depth]``."""
COLD_BYTES = 1 << 27
"""Bytes of the weights that calls take in turns, so that none is in a cache."""


def compare(shape: str, target: Target, seconds: float, rounds: int, database: str) -> Any:
    """Return the times of a product with its weight in each order, in turns."""
    m, n, k = map(int, shape.split("x"))
    texts = {order: f"matmul m={m} n={n} k={k} b={order} {EPILOGUE}" for order in LAYOUTS}
    for text in texts.values():
        if seconds:
            tune(text, target, database, seconds=seconds)
    functions = {order: best(text, target, database) for order, text in texts.items()}
    draw = np.random.default_rng(0).standard_normal
    x, bias = draw((m, k), np.float32), draw(n, np.float32)
    weights = [draw((n, k), np.float32) for _ in range(max(2, COLD_BYTES // (4 * n * k)))]
    sets = {order: [made(weight) for weight in weights] for order, made in LAYOUTS.items()}
    outs = {order: functions[order](x, sets[order][0], bias) for order in LAYOUTS}
    for order in LAYOUTS:
        np.testing.assert_allclose(outs[order], outs["col"], atol=1e-4 * k)
    times: dict[str, list[float]] = {order: [] for order in LAYOUTS}
    following = cycle(range(len(weights)))
    for _ in range(rounds):
        for order in LAYOUTS:
            weight = sets[order][next(following)]
            began = time.thread_time()
            functions[order](x, weight, bias, out=outs[order])
            times[order].append(time.thread_time() - began)
    return _summary(times) | {"schedule": str(functions["packed"].schedule)}


def _summary(times: dict[str, list[float]]) -> dict[str, Any]:
    """Return median times; and of those of the better plain order over those of the packed one,
    turn by turn, the median and the quartiles."""
    seconds = medians(times)
    plain = min(("col", "row"), key=seconds.__getitem__)
    gain, quartiles = ratio(times[plain], times["packed"])
    return {"seconds": seconds, "plain": plain, "gain": gain, "quartiles": quartiles}


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each shape, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), help="rows x columns x depth")
    parser.add_argument("--seconds", type=float, default=60, help="of tuning each; 0 for none")
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--db", default="packed_weights.db")
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    target, found = detect_target("cpu", 1), {}
    for shape in asked.shapes:
        own = found[shape] = compare(shape, target, asked.seconds, asked.rounds, asked.db)
        lower, upper = own["quartiles"]
        times = ", ".join(f"{order} {s * 1e6:.0f} us" for order, s in own["seconds"].items())
        print(f"{shape:14} {times}: {own['gain']:.2f} ({lower:.2f} to {upper:.2f})", flush=True)
    results = {
        "seconds": asked.seconds,
        "rounds": asked.rounds,
        "shapes": found,
    }
    write_run(asked.out, target.summary, results)


if __name__ == "__main__":
    main()
