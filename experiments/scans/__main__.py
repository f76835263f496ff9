"""Scans and recurrences beside copies, torch, and quadratic kernels, in turns; see README.md."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.drawn import fastest, hold_to_the_first, into_place
from experiments.resuming import write_run
from experiments.scans.cases import CASES, CHUNK, Call, Case
from experiments.turns import in_turns, medians, ratio
from tilewright import Target, detect_target, program
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.registry import template_named
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.served import workload_of

OUT = Path(__file__).parent / "results"


def compare(case: Case, target: Target, schedules: int, rounds: int) -> Any:
    """Return the times of kernels of each template and of the rivals, in turns."""
    made = program(case.text, **case.extents)
    arrays = case.inputs(draw(made, 1))
    given = [np.ascontiguousarray(arrays[operand.name]) for operand in made.operands]
    calls: dict[str, Call] = {}
    chosen: dict[str, str] = {}
    clock = time.process_time if target.threads == 1 else time.perf_counter
    for name in (case.template, *case.others):
        found = _fastest(case, name, target, schedules, given)
        if found is not None:
            chosen[name] = str(found.schedule)
            calls[name] = into_place(found, given)
    calls |= case.rivals(arrays)
    hold_to_the_first(call for name, call in calls.items() if "copy" not in name)
    times = in_turns(calls, rounds, clock)
    own = times.pop(case.template)
    ratios = {name: ratio(other, own) for name, other in times.items()}
    return {
        "seconds": medians({case.template: own, **times}),
        "ratios": {name: {"median": m, "quartiles": q} for name, (m, q) in ratios.items()},
        "schedules": chosen,
    }


def _fastest(
    case: Case, name: str, target: Target, schedules: int, given: Sequence[np.ndarray]
) -> CpuFunction | None:
    """Return the fastest of some schedules of a template, at random if it has more; None if it does
    not serve the case."""
    workload = workload_of(program(case.text, **case.extents))
    template = template_named(name, target)
    assert template is not None
    if template.why_not(workload, target) is not None:
        return None
    space = Space(workload, target, [template(workload, target)])
    return fastest(space, schedules, given, time.perf_counter)


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each case, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=16, help="tried of each template")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="small sizes, to try the command out")
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    torch.set_num_threads(asked.threads)
    target, found = detect_target("cpu", asked.threads), {}
    for name in asked.only:
        case = _small(CASES[name]) if asked.small else CASES[name]
        own = found[name] = compare(case, target, asked.schedules, asked.rounds)
        times = ", ".join(f"{who} {s * 1e3:.2f} ms" for who, s in own["seconds"].items())
        ratios = ", ".join(f"{who} {r['median']:.2f}" for who, r in own["ratios"].items())
        print(f"{name:24} {times}: over ours {ratios}", flush=True)
    results = {
        "torch": torch.__version__,
        "schedules": asked.schedules,
        "rounds": asked.rounds,
        "cases": found,
    }
    write_run(asked.out, target.summary, results)


def _small(case: Case) -> Case:
    """Return a case of sizes that take no time."""
    return replace(case, extents={axis: min(n, 2 * CHUNK) for axis, n in case.extents.items()})


if __name__ == "__main__":
    main()
