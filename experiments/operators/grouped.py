"""Grouped products against cuBLAS and torch; see README.md beside this file.

    python -m experiments.operators.grouped [--seconds 4] [--minutes 3] [--verify N]
        [--only PATTERN] [--known FILE ...] [--out FILE]

bfloat16, the weights of each expert as ``nn.Linear`` has them, rows shared among experts evenly by
chance or by Zipf's law. Each case is searched for so many seconds with its table and then timed in
turns with ``torch._grouped_mm``, which is given the ends of the groups, with products of cuBLAS
one after the other in a CUDA graph, and with eager torch group by group. Writes the results after
every case, and a table beside them; a further call with the same file goes on with cases not in
it. Needs a GPU.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.operators.exploring.known import add_known, known_schedules
from experiments.operators.families.segments import LAWS, table
from experiments.operators.summary import line
from experiments.operators.summary import table as summary_table
from experiments.resuming import remaining, resume, write
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Case:
    """``rows`` of ``depth`` elements, to ``columns``; ``law`` says how ``experts`` get them."""

    experts: int
    depth: int
    columns: int
    rows: int
    law: str

    @property
    def name(self) -> str:
        """A name such as ``8 x 4096x14336, 512 rows, zipf``."""
        return f"{self.experts} x {self.depth}x{self.columns}, {self.rows} rows, {self.law}"

    @cached_property
    def workload(self) -> Workload:
        """The workload."""
        return workload(
            "grouped_matmul",
            t=self.rows, n=self.columns, k=self.depth, experts=self.experts,
            b="col", dtype="bfloat16",
        )  # fmt: skip

    @cached_property
    def chosen(self) -> np.ndarray:
        """The expert of each row, sorted."""
        return table(self.rows, self.experts, self.law)

    @cached_property
    def ends(self) -> list[int]:
        """The row at which each expert's rows end."""
        return np.cumsum(np.bincount(self.chosen, minlength=self.experts)).tolist()


LAYERS = ((8, 4096, 14336), (64, 2048, 1408))
"""Experts, depth and columns of Mixtral 8x7B (Jiang et al. 2024) and DeepSeekMoE 16B (Dai et al.
2024)."""
CASES = tuple(
    Case(*layer, rows, law) for rows in (4096, 512, 16384, 64) for layer in LAYERS for law in LAWS
)
SLACK = 1e-3
"""Allowed error of sums of thousands of terms in float32, as a share of the outputs' mean."""
LEAD = 48
"""Flushes before a round: several calls of Python each, on a host that compiles."""
VERIFIED: tuple[dict[str, int | str], ...] = (
    {"t": 333, "n": 264, "k": 200, "experts": 7, "b": "col"},
    {"t": 700, "n": 136, "k": 72, "experts": 40},
    {"t": 64, "n": 520, "k": 128, "experts": 64, "b": "col", "out": "float32"},
    {"t": 129, "n": 72, "k": 64, "experts": 1},
)
EPILOGUE = "gelu(x + bias[expert[t], n]) * gate[t, n]"


def main() -> None:
    options = _options()
    from experiments.operators.exploring.verifying import verify
    from tilewright.spaces.target import detect_target

    end, path = time.monotonic() + 60 * options.minutes, options.out
    target = detect_target("cuda")
    results = resume(path, "experiments.operators.grouped", {"target": target.to_json()})
    given = {"dtype": "bfloat16", "epilogue": EPILOGUE}
    verified = [workload("grouped_matmul", **(given | parameters)) for parameters in VERIFIED]
    verify(results, verified, target, options.verify)
    for case in remaining(CASES, results, options.only, end - options.seconds - 8):
        row = measure(case, target, options.seconds, options.known)
        results["cases"][case.name] = row
        write(path, results, summary_table)
        print(line(case.name, row), flush=True)


def measure(case: Case, target: Any, seconds: float, known: Sequence[Path]) -> dict[str, Any]:
    """Return the case's row of the results, after ``seconds`` of search that begin with what is
    ``known``."""
    from experiments.operators.exploring.finals import compare, rates

    explorer = explorer_of(case, target)
    explorer.explore(seconds, known=known_schedules(known, case.name, explorer.space))
    others, unavailable = rivals(case, explorer.tensors)
    row: dict[str, Any] = {"operator": "grouped_matmul", "unavailable": unavailable}
    row["rows"] = np.diff([0, *case.ends]).tolist()
    row |= compare(explorer, others, rounds=30, seconds=1.0, lead=LEAD)
    return row | {"tflops": rates(row, case.workload.flops)}


def explorer_of(case: Case, target: Any) -> Any:
    """Make the explorer of the case's kernels, with its table; exact outputs are torch's."""
    from experiments.operators.exploring.explore import Explorer
    from tilewright.scheduler.machine import roofline
    from tilewright.spaces.registry import space_for

    tensors = _tensors(case)
    exact = by_groups(case, tensors["A"], tensors["B"], wide=True)
    space = space_for(case.workload, target)
    return Explorer(space, tensors, [exact], roofline(target), SLACK)


def rivals(
    case: Case, tensors: Mapping[str, Any]
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """Return the rivals that compute the case, and why others do not."""
    import torch

    from experiments.rivals import usable

    a, b = tensors["A"], tensors["B"]
    ends = torch.tensor(case.ends, device="cuda", dtype=torch.int32)
    eager = partial(by_groups, case, a, b)
    return usable(
        {
            "eager": lambda: eager,
            "grouped_mm": lambda: partial(torch._grouped_mm, a, b, offs=ends),
            "cublas": lambda: _graph(eager),
        }
    )


def by_groups(case: Case, a: Any, b: Any, wide: bool = False) -> Any:
    """Return a product for each expert that has rows, in float64 if it is to be ``wide``."""
    import torch

    kind = torch.float64 if wide else a.dtype
    out = torch.empty(case.rows, case.columns, device=a.device, dtype=kind)
    for expert, (first, end) in enumerate(pairwise([0, *case.ends])):
        if first < end:
            torch.mm(a[first:end].to(kind), b[expert].to(kind), out=out[first:end])
    return out


def _graph(call: Callable[[], object]) -> Callable[[], object]:
    """Return the same launches as one CUDA graph."""
    import torch

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def _tensors(case: Case) -> dict[str, Any]:
    """Return the case's table, and random arrays, uniform in [-1, 1), in the order of their
    memory."""
    import torch

    generator = torch.Generator("cuda").manual_seed(0)

    def drawn(*shape: int) -> Any:
        values = torch.empty(shape, device="cuda", dtype=torch.bfloat16)
        return values.uniform_(-1, 1, generator=generator)

    weights = drawn(case.experts, case.columns, case.depth)
    return {
        "expert": torch.from_numpy(case.chosen).cuda(),
        "A": drawn(case.rows, case.depth),
        "B": weights.transpose(1, 2),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.operators.grouped")
    parser.add_argument("--seconds", type=float, default=4.0, help="of search a case")
    parser.add_argument("--minutes", type=float, default=3.0, help="for all of it")
    parser.add_argument("--verify", type=int, default=0, help="schedules of each of a few problems")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="cases' names")
    parser.add_argument("--out", type=Path, default=Path("grouped.json"))
    add_known(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
