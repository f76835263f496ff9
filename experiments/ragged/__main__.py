"""Operators over ranges of entries beside SciPy and torch, in turns; see README.md."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.ragged.cases import CASES, Call, Case, dense_weight
from experiments.ragged.gpu_cases import GPU_CASES
from experiments.resuming import write_run
from experiments.turns import in_turns, medians, ratio
from tilewright import Target, best, detect_target, pack, program, tune
from tilewright.spaces.language.inputs import draw

OUT = Path(__file__).parent / "results"
HELD_OUT = 7
"""The seed of the graph that is timed; kernels are tuned on draws of the program."""
HELD = ("row", "ptr", "col", "val")
"""Arrays that a function holds, for they do not change from call to call."""


def compare(case: Case, target: Target, seconds: float, rounds: int, database: str) -> Any:
    """Return the times of a kernel and of its rivals, in turns, on a graph it was not tuned on."""
    made = program(case.text, **case.extents)
    if seconds:
        tune(made, target, database, seconds=seconds)
    function = best(made, target, database if seconds else None)
    rows, columns = case.entries_of(HELD_OUT)
    starts = np.searchsorted(rows, np.arange(case.rows + 1)).astype(np.int32)
    arrays = dict(draw(made, 1))
    tables = {"row": rows.astype(np.int32), "ptr": starts}
    if "col" in arrays:
        tables["col"] = columns.astype(arrays["col"].dtype)
    arrays |= {name: table for name, table in tables.items() if name in arrays}
    held = {name: arrays.pop(name) for name in HELD if name in arrays}
    holding, given = function.holding(**held), tuple(arrays.values())
    every = {**held, **arrays, "starts": starts}
    with np.errstate(all="ignore"):
        calls: dict[str, Call] = {"own": lambda: holding(*given)}
        calls |= case.rivals({**every, "col": columns.astype(np.int32)})
        if case.dense:
            calls["own, dense"] = own_dense(case, every, target, seconds, database)
        _check(calls, case.rows)
        clock = time.process_time if target.threads == 1 else time.perf_counter
        times = in_turns(calls, rounds, clock)
    return _summary(times) | {"schedule": str(function.schedule)}


def own_dense(
    case: Case, arrays: Mapping[str, np.ndarray], target: Target, seconds: float, database: str
) -> Call:
    """Return the call of our product with the whole weight, packed and tuned as long."""
    product = f"matmul m={case.width} n={case.rows} k={case.rows} b=packed"
    if seconds:
        tune(product, target, database, seconds=seconds)
    dense = best(product, target, database if seconds else None)
    weight, a = pack(dense_weight(arrays)), arrays["a"]
    return lambda: dense(a, weight)


def _check(calls: Mapping[str, Call], rows: int) -> None:
    """Hold our result to the first rival's; rows without entries may differ."""
    own, *others = (np.asarray(call()) for call in calls.values())
    finite = np.isfinite(own)
    size = float(np.abs(own[finite]).max())
    np.testing.assert_allclose(own[finite], others[0][finite], rtol=1e-3, atol=1e-4 * size)


def _summary(times: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return median times, and of the best rival's over ours, turn by turn, median and
    quartiles."""
    seconds = medians(times)
    rival = min((name for name in seconds if name != "own"), key=seconds.__getitem__)
    middle, quartiles = ratio(times[rival], times["own"])
    return {"seconds": seconds, "rival": rival, "ratio": middle, "quartiles": quartiles}


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each case, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="*", default=[], metavar="CASE")
    parser.add_argument("--minutes", type=float, default=1.4, help="for all of it on a GPU")
    parser.add_argument("--jobs", type=int, default=0, help="processes beside a GPU; 0: all cores")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30, help="of tuning each; 0 for none")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="small sizes, to try the command out")
    parser.add_argument("--db", default="ragged.db")
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    known = GPU_CASES if asked.target == "cuda" else CASES
    if unknown := [name for name in asked.only if name not in known]:
        parser.error(f"there is no case {unknown[0]!r}; allowed: {', '.join(known)}")
    if asked.target == "cuda":
        from experiments.ragged import gpu

        return gpu.main(asked)
    torch.set_num_threads(asked.threads)
    target, found = detect_target("cpu", asked.threads), {}
    for name in asked.only or CASES:
        case = _small(CASES[name]) if asked.small else CASES[name]
        own = found[name] = compare(case, target, asked.seconds, asked.rounds, asked.db)
        lower, upper = own["quartiles"]
        times = ", ".join(f"{who} {s * 1e3:.2f} ms" for who, s in own["seconds"].items())
        print(f"{name:22} {times}: {own['ratio']:.2f} ({lower:.2f} to {upper:.2f})", flush=True)
    results = {
        "torch": torch.__version__,
        "seconds": asked.seconds,
        "rounds": asked.rounds,
        "cases": found,
    }
    write_run(asked.out, target.summary, results)


def _small(case: Case) -> Case:
    """Return a case of sizes that take no time."""
    return replace(case, rows=64, entries=500, width=min(case.width, 20))


if __name__ == "__main__":
    main()
