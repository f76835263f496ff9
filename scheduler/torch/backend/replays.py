"""Time calls on a GPU as replays of a CUDA graph, in which no launch waits for the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

LONG_ENOUGH = 2e-3
"""Seconds between two events, at least: they are off by a microsecond."""
WARM_UP = 2
"""Calls before the capture, in which kernels are loaded and libraries get their workspaces."""


def replayed(
    call: Callable[[Sequence[Any]], Any], inputs: Sequence[Sequence[Any]]
) -> Callable[[], float]:
    """Capture a call with each of ``inputs``, one after the other.

    The result replays the graph and answers with the seconds of one call. Raises RuntimeError if
    the call does what a graph may not hold.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for each in inputs[:WARM_UP]:
            call(each)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for each in inputs:
            call(each)
    repeats = max(1, min(1000, round(LONG_ENOUGH / max(_seconds(graph, 1), 1e-7))))
    return lambda: _seconds(graph, repeats) / len(inputs)


def _seconds(graph: torch.cuda.CUDAGraph, repeats: int) -> float:
    """Return the seconds of a replay, on average over some."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(repeats):
        graph.replay()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) * 1e-3 / repeats
