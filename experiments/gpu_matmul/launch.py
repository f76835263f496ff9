"""Measures a call from Python, and checks that it can be captured in a CUDA graph.

    python -m experiments.gpu_matmul.launch [--out FILE]

The product is so small that the GPU waits for the host: the time between calls is the host's.
``driver`` is about the share that the driver takes of a call: a bare start, through ctypes, of the
launch that the call prepared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tilewright.scheduler.best import best
from tilewright.spaces.operators import workload

CALLS = 400  # fewer than the driver queues, so that none waits for the GPU
ROUNDS = 50


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.gpu_matmul.launch")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    small = workload("matmul", m=128, n=128, k=64, dtype="bfloat16", b="col")
    function = best(small, "cuda", None)
    a, b = (torch.randn(128, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty(128, 128, device="cuda", dtype=torch.bfloat16)
    transposed = b.t()
    function(a, transposed, out=out)
    stream = torch.cuda.current_stream().cuda_stream
    launch = function._launches.find([stream, *(x.data_ptr() for x in (a, transposed, out))])
    calls = {
        "tilewright": lambda: function(a, transposed, out=out),
        "driver": launch.start,
        "torch.mm": lambda: torch.mm(a, transposed, out=out),
    }
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "schedule": str(function.schedule),
        "us_per_call": per_call(calls),
        "graph_replay_agrees": captured(calls["tilewright"], out),
    }
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def per_call(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median over rounds, in turn, of the host's microseconds for one asynchronous call."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for name in [*calls] * ROUNDS:
        call = calls[name]
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times[name].append((time.perf_counter() - start) / CALLS * 1e6)
    torch.cuda.synchronize()
    return {name: statistics.median(found) for name, found in times.items()}


def captured(call: Callable[[], object], out: torch.Tensor) -> bool:
    """Tell whether a captured and replayed call writes what a plain call writes."""
    call()
    expected = out.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    return bool(torch.equal(out, expected))


if __name__ == "__main__":
    main()
