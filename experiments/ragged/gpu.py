"""Operators over ranges on a GPU: searched side by side, then each timed in turns with torch.

Every call begins with a cold L2. Kernels are searched and timed on a graph that no program drew.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import torch

from experiments.gpu_matmul.timing import TooBusyError
from experiments.models.choosing import build, process_pool
from experiments.models.gpu import PARENTS, search
from experiments.operators.exploring import finals
from experiments.operators.exploring.explore import Explorer
from experiments.operators.summary import COPY, OURS
from experiments.ragged.gpu_cases import GPU_CASES, GpuCase
from experiments.resuming import resume, write
from experiments.rivals import gpu_copy, usable
from tilewright import detect_target, program
from tilewright.measure.interfaces import Built
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.served import workload_of

FIRST, FURTHER = 12, 8
"""Schedules of an operator that are tried at first, and at each further turn."""
SLACK = 1e-3
"""Allowed error beside the rounding of an output, as a share of the outputs' mean: sums of long
rows cancel."""
SETTLING = 2.5
"""Seconds that an operator takes after its search."""
TIMING = {"rounds": 20, "seconds": 0.4, "lead": 48, "heat": 0.1}


def main(asked: argparse.Namespace) -> None:
    """Compare all cases that the results lack, print a line for each, and write the results."""
    end = time.monotonic() + 60 * asked.minutes
    target = detect_target("cuda")
    assert isinstance(target, CudaTarget)
    facts = {"target": target.to_json(), "torch": torch.__version__}
    results = resume(asked.out, "experiments.ragged", facts)
    wanted = [n for n in asked.only or GPU_CASES if n not in results["cases"]]
    contests: list[Contest] = []

    def made() -> Iterator[Contest]:
        for name in wanted:
            contests.append(Contest(name, GPU_CASES[name], target))
            yield contests[-1]

    with process_pool(asked.jobs) as processes:
        search(made(), processes, end - SETTLING * len(wanted))
    for contest in contests:
        try:
            row = results["cases"][contest.name] = contest.row()
        except TooBusyError as error:
            print(f"{contest.name}: {error}", flush=True)
            continue
        write(asked.out, results)
        print(_line(contest.name, row), flush=True)


class Contest:
    """The search of a case, and its rivals."""

    def __init__(self, name: str, case: GpuCase, target: CudaTarget) -> None:
        self.name, self.case, self.target = name, case, target
        self.workload = workload_of(program(case.text, **case.extents))
        drawn = case.tensors("cuda")
        self.tensors = {array.name: drawn[array.name] for array in self.workload.inputs}
        space, exact = space_for(self.workload, target), case.exact(self.tensors)
        self.explorer = Explorer(space, self.tensors, [exact], slack=SLACK)
        self.turns = 0

    def ask(self, process_pool: Executor) -> Future[list[Built]]:
        """Return the next schedules, on their way."""
        parents, count = self.explorer.best[:PARENTS], FURTHER if self.turns else FIRST
        self.turns += 1
        return process_pool.submit(build, self.workload, self.target, parents, count, self.turns)

    def tell(self, found: Sequence[Built]) -> None:
        """Judge and time what is new."""
        for built in found:
            if built.candidate.schedule not in self.explorer.calls:
                self.explorer.judge(built)

    def row(self) -> dict[str, Any]:
        """Return the row of the results, after all were timed in turns."""
        rivals = self.case.rivals(self.tensors)
        calls, unavailable = usable({name: lambda call=call: call for name, call in rivals.items()})
        calls[COPY] = gpu_copy(self.workload.least_bytes)
        row: dict[str, Any] = {"turns": self.turns, "bytes": self.workload.least_bytes}
        row |= {"unavailable": unavailable} if unavailable else {}
        row |= finals.compare(self.explorer, calls, **TIMING)
        own = row["median_s"].get(OURS)
        if own:
            row["ratios"] = {n: s / own for n, s in row["median_s"].items() if n in rivals}
        return row


def _line(name: str, row: Mapping[str, Any]) -> str:
    times = ", ".join(f"{who} {1e6 * seconds:.0f} us" for who, seconds in row["median_s"].items())
    ratios = ", ".join(f"{who} {found:.2f}" for who, found in row.get("ratios", {}).items())
    return f"{name}: {times}; over ours: {ratios}; {row['outcomes']}"
