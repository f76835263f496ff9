"""Grouped products against cuBLAS and torch; see README.md beside this file.

    python -m experiments.operators.grouped [--seconds 4] [--minutes 3] [--verify N]
        [--only PATTERN] [--out FILE]

bfloat16, the weights of each expert as ``nn.Linear`` has them, rows shared among experts evenly by
chance or by Zipf's law. Each case is searched for so many seconds with its table and then timed in
turns with ``torch._grouped_mm``, which is given the ends of the groups, with products of cuBLAS
one after the other in a CUDA graph, and with eager torch group by group. Writes the results after
every case, and a table beside them; a further call with the same file goes on with cases not in
it. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.operators.segments import LAWS, table
from experiments.operators.summary import OURS, line
from experiments.operators.summary import table as summary_table
from spaces.operators import workload
from spaces.workloads.workload import Workload


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
        """Such as ``8 x 4096x14336, 512 rows, zipf``."""
        return f"{self.experts} x {self.depth}x{self.columns}, {self.rows} rows, {self.law}"

    @cached_property
    def workload(self) -> Workload:
        """What is computed."""
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
        """Where the rows of each expert end."""
        return np.cumsum(np.bincount(self.chosen, minlength=self.experts)).tolist()


LAYERS = ((8, 4096, 14336), (64, 2048, 1408))
"""Experts, depth and columns of Mixtral 8x7B (Jiang et al. 2024) and DeepSeekMoE 16B (Dai et al.
2024)."""
CASES = tuple(
    Case(*layer, rows, law) for rows in (4096, 512, 16384, 64) for layer in LAYERS for law in LAWS
)
SLACK = 1e-3
"""Of the outputs' mean, that sums of thousands of terms may be wrong by in float32."""
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
    from spaces.target import detect_target

    end, path = time.monotonic() + 60 * options.minutes, options.out
    results: dict[str, Any] = {"cases": {}}
    if path.exists():
        results = json.loads(path.read_text())
    target = detect_target("cuda")
    results |= {"target": target.to_json(), "date": datetime.now(UTC).date().isoformat()}
    results["command"] = f"python -m experiments.operators.grouped {' '.join(sys.argv[1:])}"
    if options.verify and "verification" not in results:
        results["verification"] = verified(target, options.verify)
        print(json.dumps(results["verification"]), flush=True)
    for case in CASES:
        if case.name in results["cases"] or not options.only.search(case.name):
            continue
        if time.monotonic() + options.seconds + 8 > end:
            break
        row = measure(case, target, options.seconds)
        results["cases"][case.name] = row
        path.write_text(json.dumps(results, indent=1) + "\n")
        path.with_suffix(".md").write_text(summary_table(results))
        print(line(case.name, row), flush=True)


def verified(target: Any, schedules: int) -> dict[str, dict[str, int]]:
    """How many random schedules of each template are right on the hardware, by workload."""
    from scheduler.verification import draw, measure
    from spaces.registry import space_for

    rows = {}
    for seed, parameters in enumerate(VERIFIED):
        given = {"dtype": "bfloat16", "epilogue": EPILOGUE, **parameters}
        space = space_for(workload("grouped_matmul", **given), target)
        found: Counter[str] = Counter()
        for verdict in measure(space, draw(space, schedules, seed)):
            outcome = "right" if verdict.right else "refused" if verdict.refused else "wrong"
            found[f"{verdict.schedule.template}: {outcome}"] += 1
            if outcome == "wrong":
                print(f"WRONG {space.workload}: {verdict.schedule}: {verdict.error_text}")
        rows[str(space.workload)] = dict(found)
    return rows


def measure(case: Case, target: Any, seconds: float) -> dict[str, Any]:
    """The case's row of the results, after ``seconds`` of search."""
    from experiments.gpu_matmul.timing import interleave
    from experiments.operators.explore import Explorer
    from experiments.operators.gpu import FINALISTS, KEPT, summary
    from scheduler.machine import roofline
    from spaces.registry import space_for

    tensors = _tensors(case)
    exact = by_groups(case, tensors["A"], tensors["B"], wide=True)
    space = space_for(case.workload, target)
    explorer = Explorer(space, tensors, [exact], roofline(target), SLACK)
    best = explorer.explore(seconds)[:FINALISTS]
    del exact
    calls: dict[str, Any] = {f"{OURS} {n}": explorer.calls[s] for n, s in enumerate(best)}
    others, unavailable = rivals(case, tensors)
    row: dict[str, Any] = {"operator": "grouped_matmul", "outcomes": dict(explorer.outcomes)}
    row |= {"unavailable": unavailable, "rows": np.diff([0, *case.ends]).tolist()}
    row["explored"] = [
        {"us": 1e6 * explorer.seconds[s], "schedule": s.to_json()} for s in explorer.best[:KEPT]
    ]
    times = interleave(calls | others, rounds=30, seconds=1.0, lead=LEAD)
    found = summary(times, [s.to_json() for s in best], case.workload.least_bytes)
    found["tflops"] = {n: case.workload.flops / t / 1e12 for n, t in found["median_s"].items()}
    return row | found


def rivals(
    case: Case, tensors: Mapping[str, Any]
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """What else computes the case, and why what does not."""
    import torch

    a, b = tensors["A"], tensors["B"]
    calls: dict[str, Callable[[], object]] = {"eager": lambda: by_groups(case, a, b)}
    unavailable = {}
    ends = torch.tensor(case.ends, device="cuda", dtype=torch.int32)
    makers = {
        "grouped_mm": lambda: lambda: torch._grouped_mm(a, b, offs=ends),
        "cublas": lambda: _graph(lambda: by_groups(case, a, b)),
    }
    for name, make in makers.items():
        try:
            call = make()
            call()
            torch.cuda.synchronize()
            calls[name] = call
        except Exception as error:  # a library that fails is no reason to stop
            unavailable[name] = str(error).splitlines()[0][:200]
    return calls, unavailable


def by_groups(case: Case, a: Any, b: Any, wide: bool = False) -> Any:
    """A product for each expert that has rows, in float64 if it is to be ``wide``."""
    import torch

    kind = torch.float64 if wide else a.dtype
    out = torch.empty(case.rows, case.columns, device=a.device, dtype=kind)
    for expert, (first, end) in enumerate(pairwise([0, *case.ends])):
        if first < end:
            torch.mm(a[first:end].to(kind), b[expert].to(kind), out=out[first:end])
    return out


def _graph(call: Callable[[], object]) -> Callable[[], object]:
    """The same launches as one CUDA graph."""
    import torch

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def _tensors(case: Case) -> dict[str, Any]:
    """The case's table, and random arrays, uniform in [-1, 1), in the order of their memory."""
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
    return parser.parse_args()


if __name__ == "__main__":
    main()
