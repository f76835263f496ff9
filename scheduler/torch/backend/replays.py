"""Time calls on a GPU as replays of a CUDA graph, in which no launch waits for the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

LONG_ENOUGH = 2e-3
"""Seconds between two events, at least: they are off by a microsecond."""
WARM_UP = 2
"""Calls before the capture, in which kernels are loaded and libraries get their workspaces."""


@dataclass(frozen=True)
class Replays:
    """A graph of one call for each of ``inputs``, which replays it so many times and answers with
    the seconds of one call. It keeps the call and the inputs: the graph reads and writes memory
    that they own."""

    graph: torch.cuda.CUDAGraph
    call: Callable[[Sequence[Any]], Any]
    inputs: Sequence[Sequence[Any]]
    repeats: int

    def __call__(self) -> float:
        """Replay the graph, and return the seconds of one call."""
        return seconds(self.graph.replay, self.repeats) / len(self.inputs)


def replayed(call: Callable[[Sequence[Any]], Any], inputs: Sequence[Sequence[Any]]) -> Replays:
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
    repeats = max(1, min(1000, round(LONG_ENOUGH / max(seconds(graph.replay, 1), 1e-7))))
    return Replays(graph, call, inputs, repeats)


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the seconds that a GPU takes for what a call queues, on average over some calls."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(repeats):
        call()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) * 1e-3 / repeats
