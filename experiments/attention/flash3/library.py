"""Calls of the libraries that ``build.sh`` makes, on torch's tensors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import torch

from experiments.attention.cases import AttentionCase
from experiments.attention.tensors import Tensors


def why_not(case: AttentionCase, folder: Path) -> str:
    """Say why a case cannot be called; empty if it can."""
    if case.form not in ("", "causal"):
        return f"not built for {case.form}"
    if case.dtype != "bfloat16":
        return f"not built for {case.dtype}"
    return "" if _file(case, folder).exists() else f"there is no {_file(case, folder)}"


def call_of(
    case: AttentionCase, tensors: Tensors, folder: Path
) -> tuple[Callable[[], torch.Tensor], torch.Tensor]:
    """Return a function that queues the kernels on torch's stream, and the output it writes."""
    library = ctypes.CDLL(str(_file(case, folder)))
    q = tensors["q"]
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count
    numbers = (case.batch, case.heads, case.kv_heads, case.queries, case.length)
    sizes = (ctypes.c_long * 7)(*numbers, case.has("causal"), processors)
    output, rows = torch.empty_like(q), (case.batch, case.heads, case.queries)
    room = [
        torch.empty(rows, device=q.device, dtype=torch.float32),
        torch.zeros(1, device=q.device, dtype=torch.int32),
    ]
    if case.queries == 1:
        parts = library.parts(sizes)
        room += [torch.empty((parts, *rows, n), device=q.device) for n in (case.depth, 1)]
    held = [*(tensors[name].contiguous() for name in "qkv"), output, *room]
    arrays = (ctypes.c_void_p * len(held))(*(tensor.data_ptr() for tensor in held))
    start = library.decode if case.queries == 1 else library.prefill
    scale = ctypes.c_float(1 / math.sqrt(case.depth))

    def call(held: object = held) -> torch.Tensor:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = start(arrays, sizes, scale, stream)
        assert status == 0, f"CUDA's error {status}"
        return output

    return call, output


def _file(case: AttentionCase, folder: Path) -> Path:
    kind = "decode" if case.queries == 1 else "prefill"
    return folder / f"{kind}_{case.depth}.so"
