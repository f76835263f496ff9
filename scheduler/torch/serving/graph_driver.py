"""CUDA graphs by ``torch.cuda.CUDAGraph``, whose parameters ``cuda-python`` updates.

It needs a GPU: ``experiments/decoding`` runs it on one. Tests have a driver of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tilewright.scheduler.torch.serving.graphs import Captured
from tilewright.spaces.errors import InputError


class TorchDriver:
    """The operations of :class:`scheduler.torch.serving.graphs.Driver` on the current GPU. Graphs
    and executables are both ``torch.cuda.CUDAGraph``."""

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise InputError("CUDA graphs need a GPU, and torch finds none")
        self._pool = torch.cuda.graph_pool_handle()

    def capture(self, call: Callable[[], Any]) -> Captured:
        """Run a call twice: first to compile what it compiles, and then to record it."""
        call()
        torch.cuda.synchronize()
        before = torch.cuda.memory_reserved()
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph, pool=self._pool):
            outputs = call()
        return Captured(graph, outputs, max(0, torch.cuda.memory_reserved() - before))

    def instantiate(self, graph: Any) -> tuple[Any, int]:
        """Instantiate the graph itself; the bytes are those that the device then has less."""
        before, _ = torch.cuda.mem_get_info()
        graph.instantiate()
        after, _ = torch.cuda.mem_get_info()
        return graph, max(0, before - after)

    def update(self, executable: Any, graph: Any) -> bool:
        """Update by ``cudaGraphExecUpdate``."""
        from cuda.bindings import runtime

        target = runtime.cudaGraphExec_t(executable.raw_cuda_graph_exec())
        status, *_ = runtime.cudaGraphExecUpdate(
            target, runtime.cudaGraph_t(graph.raw_cuda_graph())
        )
        runtime.cudaGetLastError()  # a refusal is no fault that others should meet
        return bool(status == runtime.cudaError_t.cudaSuccess)

    def launch(self, executable: Any) -> None:
        """Replay it on the current stream."""
        executable.replay()

    def free(self, what: Any) -> None:
        """Reset it."""
        what.reset()
