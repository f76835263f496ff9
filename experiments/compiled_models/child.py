"""One block, compiled in one way, in a process of its own: it says what compiling took, and then
runs as often as a line on standard input says, and answers with the seconds of each call."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

WAYS: dict[str, dict[str, Any]] = {
    "eager": {},
    "inductor": {"backend": "inductor"},
    "freezing": {"backend": "inductor"},
    "max-autotune": {
        "backend": "inductor",
        "options": {
            "max_autotune": True,
            "max_autotune_gemm_backends": "CPP,ATEN",
        },
    },
    "tilewright": {"backend": "tilewright", "options": {}},
    "packed": {"backend": "tilewright", "options": {}},
    "always": {"backend": "tilewright", "options": {"judge": "always"}},
}
"""The arguments of torch.compile by name; ``packed`` has weights that stay, and ``always`` replaces
each region that has a kernel."""
FROZEN = ("freezing", "max-autotune", "packed")
"""The ways in which weights are constants. An option says so too late: Dynamo asks the global."""


def main(name: str, way: str, threads: int, database: str, seconds: float) -> None:
    import torch
    from torch._inductor import config as inductor_config

    from experiments.compiled_models.blocks import make

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    module, inputs = make(name)
    arguments = dict(WAYS[way])
    inductor_config.freezing = way in FROZEN
    if arguments.get("backend") == "tilewright":
        from tilewright.scheduler.torch.backend import tilewright

        arguments["backend"] = tilewright
        tuned = {"untuned": "tune", "seconds": seconds} if seconds else {"untuned": "predict"}
        arguments["options"] = arguments["options"] | {"db": database} | tuned
    clock = time.thread_time if threads == 1 else time.perf_counter
    with torch.no_grad():
        wanted = module(*inputs)
        began, spent = time.monotonic(), time.process_time()
        run = torch.compile(module, **arguments) if arguments else module
        found = run(*inputs)
        told = {
            "compile_seconds": time.monotonic() - began,
            "compile_cpu_seconds": time.process_time() - spent,
            "error": float((found - wanted).abs().max() / wanted.abs().max()),
            "explanation": _explained(run, way),
        }
        print(json.dumps(told), flush=True)
        for line in sys.stdin:
            times = []
            for _ in range(int(line)):
                start = clock()
                run(*inputs)
                times.append(clock() - start)
            print(json.dumps(times), flush=True)


def _explained(run: Any, way: str) -> list[dict[str, Any]]:
    """Return the reports on the graph and on each region, as JSON values."""
    if way not in ("tilewright", "packed", "always"):
        return []
    from tilewright import explain

    (graph,) = explain(run).graphs
    found = [vars(region) | {"gain": region.gain} for region in graph.regions]
    left = sorted(f"{count} x {name}" for (name, _), count in graph.left.items())
    return [{"by": graph.by, "why": graph.why, "gain": graph.gain, "left": left}, *found]


if __name__ == "__main__":
    name, way, threads, database, seconds = sys.argv[1:]
    os.environ["OMP_NUM_THREADS"] = threads
    main(name, way, int(threads), database, float(seconds))
