"""One block, compiled in one way, in a process of its own: it says what compiling took, and then
runs as often as a line on standard input says, and answers with the seconds of each call. A call in
training is the forward and the backward graph.

On a GPU calls are replays of a CUDA graph."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

STAGES = {"stages": "measure", "untuned": "skip"}
"""Branches side by side, of torch's operators and kernels that were measured before."""
WAYS: dict[str, dict[str, Any]] = {
    "eager": {},
    "inductor": {"backend": "inductor"},
    "freezing": {"backend": "inductor"},
    "max-autotune": {
        "backend": "inductor",
        "options": {
            "max_autotune": True,
            "max_autotune_gemm_backends": "CPP,ATEN,TRITON",
        },
    },
    "tilewright": {"backend": "tilewright", "options": {}},
    "packed": {"backend": "tilewright", "options": {}},
    "always": {"backend": "tilewright", "options": {"judge": "always"}},
    "stages": {"backend": "tilewright", "options": STAGES},
    "stages-frozen": {"backend": "tilewright", "options": STAGES},
}
"""The arguments of torch.compile by name; ``packed`` has weights that stay, and ``always`` replaces
each region that has a kernel."""
FROZEN = ("freezing", "max-autotune", "packed", "stages-frozen")
"""The ways in which weights are constants. An option says so too late: Dynamo asks the global."""


def main(
    name: str, way: str, work: str, device: str, threads: int, database: str, seconds: float
) -> None:
    import torch
    from torch._inductor import config as inductor_config

    from experiments.compiled_models.blocks import make

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    module, inputs = make(name, device)
    arguments = dict(WAYS[way])
    inductor_config.freezing = way in FROZEN
    if arguments.get("backend") == "tilewright":
        from tilewright.scheduler.torch.backend.compiler import tilewright

        arguments["backend"] = tilewright
        tuned = {"untuned": "tune", "seconds": seconds} if seconds else {"untuned": "predict"}
        arguments["options"] = {"db": database} | tuned | arguments["options"]
    is_training = work == "training"
    step = gradients if is_training else outputs
    with torch.set_grad_enabled(is_training):
        wanted = step(module, module, inputs)
        began, spent = time.monotonic(), time.process_time()
        run = torch.compile(module, **arguments) if arguments else module
        found = step(module, run, inputs)

        def call() -> Any:
            return step(module, run, inputs)

        timed = _on_gpu(run, inputs) if device == "cuda" else _on_cpu(call, threads)
        told = {
            "compile_seconds": time.monotonic() - began,
            "compile_cpu_seconds": time.process_time() - spent,
            "error": _error(found, wanted),
            "explanation": _explained(run, way),
        }
        print(json.dumps(told), flush=True)
        for line in sys.stdin:
            print(json.dumps([timed() for _ in range(int(line))]), flush=True)


def outputs(module: Any, run: Any, inputs: Any) -> tuple[Any, ...]:
    """Return the output of a block that ``run`` computes, as a tuple."""
    return (run(*inputs),)


def gradients(module: Any, run: Any, inputs: Any) -> tuple[Any, ...]:
    """Return gradients of the mean square of a block's output, by its first input and parameters.
    ``run`` computes ``module``, forward and backward."""
    import torch

    first, *others = inputs
    first = first.detach().requires_grad_()
    return torch.autograd.grad(run(first, *others).square().mean(), [first, *module.parameters()])


def _error(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> float:
    """Return the largest error, over the largest of all values."""
    errors = [float((one - other).abs().max()) for one, other in zip(found, wanted, strict=True)]
    return max(errors) / max(float(each.abs().max()) for each in wanted)


def _on_cpu(call: Callable[[], Any], threads: int) -> Callable[[], float]:
    """Return what calls once and answers with the seconds: CPU time of a single thread, which
    computes gradients as well."""
    clock = time.thread_time if threads == 1 else time.perf_counter

    def timed() -> float:
        start = clock()
        call()
        return clock() - start

    return timed


def _on_gpu(run: Any, inputs: Any) -> Callable[[], float]:
    """Return what replays a CUDA graph of one call, and answers with its seconds. The weights of a
    block are larger than the caches, so that each replay reads them from memory."""
    from tilewright.scheduler.torch.backend.replays import replayed

    return replayed(lambda each: run(*each), [inputs])


def _explained(run: Any, way: str) -> list[dict[str, Any]]:
    """Return the reports on each graph and on each of its regions, as JSON values."""
    if WAYS[way].get("backend") != "tilewright":
        return []
    from tilewright import explain

    found = list[dict[str, Any]]()
    for graph in explain(run).graphs:
        left = sorted(f"{count} x {name}" for (name, _), count in graph.left.items())
        names = ("kind", "by", "why", "gain", "stages")
        found.append({each: getattr(graph, each) for each in names} | {"left": left})
        found += [vars(region) | {"gain": region.gain} for region in graph.regions]
    return found


if __name__ == "__main__":
    name, way, work, device, threads, database, seconds = sys.argv[1:]
    os.environ["OMP_NUM_THREADS"] = threads
    main(name, way, work, device, int(threads), database, float(seconds))
