"""Clebsch-Gordan and complex products beside e3nn and torch, in turns; see README.md."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.constants.cases import CASES as COUPLINGS
from experiments.constants.cases import Call, Coupling
from experiments.constants.spectral import CASES as SPECTRAL
from experiments.constants.spectral import Spectral
from experiments.drawn import fastest, hold_to_the_first, into_place
from experiments.resuming import write_run
from experiments.turns import in_turns, medians, ratio
from tilewright import Target, detect_target
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.served import workload_of

CASES: Mapping[str, Coupling | Spectral] = {**COUPLINGS, **SPECTRAL}
OUT = Path(__file__).parent / "results"


def compare(
    case: Coupling | Spectral, edges: int, target: Target, schedules: int, rounds: int
) -> Any:
    """Return the times of our kernel and of the rivals, in turns."""
    workload = workload_of(case.program(edges))
    arrays = workload.make_inputs(1)
    given = [arrays[array.name] for array in workload.inputs]
    space = space_for(workload, target)
    found = fastest(space, schedules, given, time.process_time)
    calls: dict[str, Call] = {"own": into_place(found, given), **case.rivals(arrays)}
    hold_to_the_first(calls.values())
    clock = time.process_time if target.threads == 1 else time.perf_counter
    times = in_turns(calls, rounds, clock)
    own = times.pop("own")
    ratios = {name: ratio(other, own) for name, other in times.items()}
    return {
        "seconds": medians({"own": own, **times}),
        **({"coefficients": _counted(case)} if isinstance(case, Coupling) else {}),
        "bytes": workload.least_bytes,
        "ratios": {name: {"median": m, "quartiles": q} for name, (m, q) in ratios.items()},
        "schedule": str(found.schedule),
    }


def _counted(case: Coupling) -> list[int]:
    """Return the numbers of coefficients that are not zero, and of all."""
    return [int(np.count_nonzero(case.coefficients)), case.coefficients.size]


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each case, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--edges", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=12, help="tried of the space")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    torch.set_num_threads(asked.threads)
    target, found = detect_target("cpu", asked.threads), {}
    for name in asked.only:
        own = found[name] = compare(CASES[name], asked.edges, target, asked.schedules, asked.rounds)
        times = ", ".join(f"{who} {s * 1e3:.2f} ms" for who, s in own["seconds"].items())
        ratios = ", ".join(f"{who} {r['median']:.2f}" for who, r in own["ratios"].items())
        print(f"{name:46} {times}: over ours {ratios}", flush=True)
    results = {
        "torch": torch.__version__,
        "edges": asked.edges,
        "schedules": asked.schedules,
        "rounds": asked.rounds,
        "cases": found,
    }
    write_run(asked.out, target.summary, results)


if __name__ == "__main__":
    main()
