"""Products of one left factor apart, and as one product with the joined weight; see README.md."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from experiments.packed_weights.__main__ import COLD_BYTES, OUT
from experiments.resuming import write_run
from experiments.turns import medians, ratio
from tilewright import Target, best, detect_target, pack, tune, workload

SHAPES = ("1x768x768", "16x768x768", "128x768x768", "1x2048x768", "16x2048x768", "128x2048x768")
Call = Callable[[np.ndarray, Sequence[np.ndarray]], list[np.ndarray]]
"""A function of the left factor and packed weights."""


class Kernels:
    """Tuned kernels of one thread, by the texts of their workloads."""

    def __init__(self, target: Target, seconds: float, database: str) -> None:
        self._target, self._seconds, self._database = target, seconds, database

    def product(self, m: int, n: int, k: int, epilogue: str = "") -> Callable[..., Any]:
        """Return the product with a packed weight."""
        fused = f' epilogue="{epilogue}"' if epilogue else ""
        return self._best(f"matmul m={m} n={n} k={k} b=packed{fused}")

    def gate(self, rows: int, half: int) -> Callable[..., Any]:
        """Return what multiplies one half of the columns by the activation of the other."""
        text = f"axes i={rows}, j={half}\nh: float32[{rows},{2 * half}]\n"
        return self._best(f"{text}y[i,j] = silu(h[i,j]) * h[i,j + {half}]")

    def _best(self, text: str) -> Callable[..., Any]:
        made = workload(text)
        if self._seconds:
            tune(made, self._target, self._database, seconds=self._seconds)
        return best(made, self._target, self._database)


def projections(kernels: Kernels, m: int, n: int, k: int) -> tuple[int, Call, Call]:
    """Return three products, such as queries, keys and values: how many weights, apart, joined."""
    one, whole = kernels.product(m, n, k), kernels.product(m, 3 * n, k)
    return 3, lambda x, each: [one(x, w) for w in each], lambda x, joined: [whole(x, *joined)]


def gated(kernels: Kernels, m: int, n: int, k: int) -> tuple[int, Call, Call]:
    """Return a product times the activation of another one: how many weights, apart, joined."""
    first = kernels.product(m, n, k, "silu(x)")
    second = kernels.product(m, n, k, "x * g[m,n]")
    whole, gate = kernels.product(m, 2 * n, k), kernels.gate(m, n)

    def apart(x: np.ndarray, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [second(x, weights[1], first(x, weights[0]))]

    return 2, apart, lambda x, joined: [gate(whole(x, *joined))]


FORMS = {"projections": projections, "gated": gated}


def compare(form: str, shape: str, kernels: Kernels, rounds: int) -> dict[str, Any]:
    """Return the times of both ways, in turns, each call with the next weights."""
    m, n, k = map(int, shape.split("x"))
    count, apart, joined = FORMS[form](kernels, m, n, k)
    draw = np.random.default_rng(0).standard_normal
    x = draw((m, k), np.float32)
    plain = [
        [draw((n, k), np.float32) for _ in range(count)]
        for _ in range(max(2, COLD_BYTES // (8 * count * n * k)))
    ]
    sets = {
        "apart": [[pack(weight) for weight in each] for each in plain],
        "joined": [[pack(np.concatenate(each))] for each in plain],
    }
    ways = {"apart": apart, "joined": joined}
    first, other = (np.concatenate(ways[way](x, sets[way][0]), axis=1) for way in ways)
    np.testing.assert_allclose(first, other, atol=1e-4 * k)
    times: dict[str, list[float]] = {way: [] for way in ways}
    following = cycle(range(len(plain)))
    for _ in range(rounds):
        place = next(following)
        for way, call in ways.items():
            began = time.thread_time()
            call(x, sets[way][place])
            times[way].append(time.thread_time() - began)
    gain, quartiles = ratio(times["apart"], times["joined"])
    return {"seconds": medians(times), "gain": gain, "quartiles": quartiles}


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), help="rows x columns x depth")
    parser.add_argument("--seconds", type=float, default=20, help="of tuning each; 0 for none")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--db", default="packed_weights.db")
    parser.add_argument("--out", type=Path, default=OUT / "joined.json")
    asked = parser.parse_args(given)
    target = detect_target("cpu", 1)
    kernels, found = Kernels(target, asked.seconds, asked.db), {}
    for shape in asked.shapes:
        for form in FORMS:
            own = found[f"{form} {shape}"] = compare(form, shape, kernels, asked.rounds)
            lower, upper = own["quartiles"]
            times = ", ".join(f"{way} {s * 1e6:.0f} us" for way, s in own["seconds"].items())
            gain = f"{own['gain']:.2f} ({lower:.2f} to {upper:.2f})"
            print(f"{form} {shape:14} {times}: {gain}", flush=True)
    results = {
        "seconds": asked.seconds,
        "rounds": asked.rounds,
        "shapes": found,
    }
    write_run(asked.out, target.summary, results)


if __name__ == "__main__":
    main()
