"""A case on a GPU: the best of its space, eager torch, compiled torch, and a copy. Needs a GPU."""

from __future__ import annotations

import statistics
from typing import Any

import torch

from experiments.gpu_matmul.timing import interleave
from experiments.operators.case import Case
from experiments.operators.explore import Explorer
from experiments.operators.references import references
from experiments.operators.summary import COPY
from experiments.operators.tensors import inputs_like
from experiments.operators.windows import other_layout
from spaces.registry import space_for
from spaces.target import Target, detect_target

FINALISTS = 3
SLACK = 1e-4
"""Of the outputs' mean, that sums of a million terms may be wrong by in float32."""
KEPT = 12  # schedules in the results, with the times that exploring took


def target(threads: int) -> Target:
    """The GPU here; :class:`spaces.errors.InputError` if there is none. Threads are a CPU's."""
    return detect_target("cuda")


def facts(target: Target) -> dict[str, Any]:
    """Nothing beside the target."""
    return {}


def measure(case: Case, target: Target, seconds: float) -> dict[str, Any]:
    """The case's row of the results, after ``seconds`` of search."""
    workload = case.workload
    tensors = inputs_like(workload)
    reference = references(case)["eager"]
    exact = _outputs(reference(**{name: _wide(t) for name, t in tensors.items()}))
    explorer = Explorer(space_for(workload, target), tensors, exact, slack=SLACK)
    best = explorer.explore(seconds)[:FINALISTS]
    del exact
    calls: dict[str, Any] = {f"tilewright {n}": explorer.calls[s] for n, s in enumerate(best)}
    calls[COPY] = copy_of(workload.least_bytes)
    calls["eager"] = lambda: reference(**tensors)
    calls |= other_layout(case, tensors)
    row: dict[str, Any] = {"outcomes": dict(explorer.outcomes), "bytes": workload.least_bytes}
    row["explored"] = [
        {"us": 1e6 * explorer.seconds[s], "schedule": s.to_json()} for s in explorer.best[:KEPT]
    ]
    try:
        torch._dynamo.reset()  # sizes seen before would make these dynamic
        compiled = torch.compile(reference, mode="max-autotune-no-cudagraphs", dynamic=False)
        compiled(**tensors)
        calls["compiled"] = lambda: compiled(**tensors)
    except Exception as error:  # a compiler that fails is no reason to stop
        row["unavailable"] = {"compiled": str(error).splitlines()[0][:200]}
    return row | summary(interleave(calls), [s.to_json() for s in best], workload.least_bytes)


def summary(times: dict[str, list[float]], schedules: list[Any], moved: int) -> dict[str, Any]:
    """Medians and least times, the best of our finalists as ``tilewright``, and GB/s."""
    ours = {name: t for name, t in times.items() if name.startswith("tilewright")}
    others = {name: t for name, t in times.items() if name not in ours}
    found: dict[str, Any] = {}
    if ours:
        first = min(ours, key=lambda name: statistics.median(ours[name]))
        others = {"tilewright": ours[first], **others}
        found["schedule"] = schedules[list(ours).index(first)]
    median = {name: statistics.median(t) for name, t in others.items()}
    return found | {
        "median_s": median,
        "least_s": {name: min(t) for name, t in others.items()},
        "gb_per_s": {name: moved / t / 1e9 for name, t in median.items()},
    }


def copy_of(size: int) -> Any:
    """A copy that reads half of ``size`` bytes and writes as many."""
    source = torch.ones(size // 2, dtype=torch.uint8, device="cuda")
    to = torch.empty_like(source)
    return lambda: to.copy_(source)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _outputs(found: Any) -> list[torch.Tensor]:
    return list(found) if isinstance(found, tuple) else [found]
