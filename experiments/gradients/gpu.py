"""Gradients on a GPU: searched side by side, then each timed in turns with torch's backward.

Every call begins with a cold L2. A gradient by torch is checked as ours are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

import torch

from experiments.gpu_matmul.timing import TooBusyError
from experiments.gradients.gpu_cases import GPU_CASES, GpuCase, Tensors
from experiments.models.choosing import NONE, build, process_pool
from experiments.models.gpu import PARENTS, search
from experiments.models.known import Known
from experiments.operators.exploring import finals
from experiments.operators.exploring.explore import Explorer
from experiments.operators.exploring.tensors import inputs_like
from experiments.operators.summary import COPY
from experiments.resuming import resume, write
from experiments.rivals import Call, gpu_copy, usable
from tilewright import detect_target, gradient
from tilewright.measure.interfaces import Built
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.operators import as_workload
from tilewright.spaces.registry import space_for

FIRST, FURTHER = 8, 8
"""Schedules of a gradient that are tried at first, and at each further turn."""
SLACK = 0.5
"""Allowed error beside the rounding of an output, as a share of the outputs' mean: weights are
rounded to bfloat16, and the first rows of causal attention are far larger than the mean."""
SETTLING = 2.0
"""Seconds that a gradient takes after its search."""
TIMING = {"rounds": 20, "seconds": 0.4, "lead": 48, "heat": 0.1}


def main(asked: argparse.Namespace) -> None:
    """Compare all cases that the results lack, print a line for each, and write the results."""
    end = time.monotonic() + 60 * asked.minutes
    target = detect_target("cuda")
    assert isinstance(target, CudaTarget)
    facts = {"target": target.to_json(), "torch": torch.__version__}
    results = resume(asked.out, "experiments.gradients", facts)
    wanted = asked.only or list(GPU_CASES)
    contests: list[Contest] = []

    def made() -> Iterator[Contest]:
        for name in wanted:
            if name not in results["cases"]:
                contests.append(Contest(name, GPU_CASES[name], target, contests))
                yield contests[-1]

    left = sum(name not in results["cases"] for name in wanted)
    with process_pool(asked.jobs) as processes:
        search(made(), processes, end - SETTLING * left)
        for contest in contests:
            try:
                row = results["cases"][contest.name] = contest.row()
            except TooBusyError as error:
                print(f"{contest.name}: {error}", flush=True)
                continue
            write(asked.out, results)
            print(_line(contest.name, row), flush=True)


class Contest:
    """The gradient of a case, its search among ``all`` contests, and its rivals."""

    def __init__(
        self, name: str, case: GpuCase, target: CudaTarget, all_of_them: Sequence[Contest]
    ) -> None:
        self.name, self.case, self.target, self.others = name, case, target, all_of_them
        self.workload = as_workload(gradient(case.operator, case.wrt, saved=case.saved))
        self.operands = inputs_like(as_workload(case.operator))
        drawn = inputs_like(self.workload, 1)
        self.tensors, exact = known_of(case, self.operands, drawn)
        self.explorer = Explorer(space_for(self.workload, target), self.tensors, exact, slack=SLACK)
        self.turns = 0

    def ask(self, process_pool: Executor) -> Future[list[Built]]:
        """Return the next schedules, on their way: once, the fastest of other gradients first."""
        parents, count = self.explorer.best[:PARENTS], FURTHER if self.turns else FIRST
        self.turns += 1
        known = Known({c.name: c.explorer.best for c in self.others if c is not self})
        given = (self.workload, self.target, parents, count, self.turns)
        return process_pool.submit(build, *given, known if self.turns == 2 else NONE, self.name)

    def tell(self, found: Sequence[Built]) -> None:
        """Judge and time what is new."""
        for built in found:
            if built.candidate.schedule not in self.explorer.calls:
                self.explorer.judge(built)

    def row(self) -> dict[str, Any]:
        """Return the row of the results, after all were timed in turns."""
        makers = {
            name: partial(backward, self.case, forward, self.operands, self.tensors)
            for name, forward in self.case.rivals.items()
        }
        calls, unavailable = usable(makers)
        calls[COPY] = gpu_copy(self.workload.least_bytes)
        row: dict[str, Any] = {"turns": self.turns, "bytes": self.workload.least_bytes}
        row |= {"unavailable": unavailable} if unavailable else {}
        row |= finals.compare(self.explorer, calls, **TIMING)
        if self.case.flops:
            row["tflops"] = finals.rates(row, self.case.flops)
        return row


def known_of(
    case: GpuCase, operands: Tensors, drawn: Tensors
) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """Return the operands of a gradient by name, and the derivatives in float64: the program's own
    ``operands``, what is saved of them, and all others as they are ``drawn``."""
    given = {**drawn, **operands}
    parts = list(_parts(case, operands, given[f"d{case.output}"]))
    for name in case.saved:
        saved = _joined(case, [part[name] for part, _ in parts])
        given[name] = saved.view(drawn[name].shape).to(drawn[name].dtype)
    exact = [
        _joined(case, [found[i] for _, found in parts]).view(operands[name].shape)
        for i, name in enumerate(case.wrt)
    ]
    return {name: given[name] for name in drawn}, exact


def _parts(
    case: GpuCase, operands: Tensors, dy: torch.Tensor
) -> Iterator[tuple[Mapping[str, torch.Tensor], Sequence[torch.Tensor]]]:
    """Yield what is saved and the derivatives in float64, of each head by itself if so wanted."""
    if case.by_head:
        heads = [(b, h) for b in range(dy.shape[0]) for h in range(dy.shape[1])]
        pieces = [({n: t[b, h] for n, t in operands.items()}, dy[b, h]) for b, h in heads]
    else:
        pieces = [(dict(operands), dy)]
    for given, factor in pieces:
        wide = {n: t.double() if t.is_floating_point() else t for n, t in given.items()}
        leaves = [wide[name].requires_grad_() for name in case.wrt]
        found = case.saving(wide)
        derivatives = torch.autograd.grad(found[case.output], leaves, factor.double())
        yield {name: found[name].detach() for name in case.saved}, derivatives


def _joined(case: GpuCase, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the values of all heads, or the only ones."""
    return torch.stack(list(parts)) if case.by_head else parts[0]


def backward(
    case: GpuCase,
    forward: Callable[[Tensors], torch.Tensor],
    operands: Tensors,
    known: Tensors,
) -> Call:
    """Return torch's backward alone: the forward pass is made before."""
    leaves = {n: t.detach().requires_grad_(n in case.wrt) for n, t in operands.items()}
    output, wanted = forward(leaves), [leaves[name] for name in case.wrt]
    factor = known[f"d{case.output}"]
    return lambda: torch.autograd.grad(output, wanted, factor, retain_graph=True)


def _line(name: str, row: Mapping[str, Any]) -> str:
    times = row["median_s"]
    words = [f"{who} {1e6 * seconds:.0f} us" for who, seconds in times.items()]
    words += [f"{who} {rate:.0f} TFLOP/s" for who, rate in row.get("tflops", {}).items()]
    return f"{name}: {', '.join(words)}; {row['outcomes']}"
