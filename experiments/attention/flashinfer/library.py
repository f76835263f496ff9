"""Calls of the library that ``build.sh`` makes, on torch's tensors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import torch

from experiments.attention.cases import SOFTCAP, WINDOW, AttentionCase
from experiments.attention.tensors import Tensors

FORMS = ("", "causal", "causal softcap", "causal softcap window")


def why_not(case: AttentionCase, folder: Path) -> str:
    """Say why a case cannot be called; empty if it can."""
    if case.form not in FORMS or case.depth != 128:
        return f"not built for {case.form} and heads of {case.depth}"
    if case.dtype != "bfloat16":
        return f"not built for {case.dtype}"
    if case.batch > 1 or case.queries == 1:
        return "its kernel for one sequence has many queries"
    return "" if _file(folder).exists() else f"there is no {_file(folder)}"


def call_of(
    case: AttentionCase, tensors: Tensors, folder: Path
) -> tuple[Callable[[], torch.Tensor], torch.Tensor]:
    """Return a function that queues the kernel on torch's stream, and the output it writes."""
    start = ctypes.CDLL(str(_file(folder))).prefill
    output = torch.empty_like(tensors["q"])
    held = [*(tensors[name].contiguous() for name in "qkv"), output]
    arrays = (ctypes.c_void_p * len(held))(*(tensor.data_ptr() for tensor in held))
    window = WINDOW if case.has("window") else 0
    numbers = (case.heads, case.kv_heads, case.queries, case.length, case.has("causal"), window)
    sizes = (ctypes.c_long * len(numbers))(*numbers)
    scale = ctypes.c_float(1 / math.sqrt(case.depth))
    softcap = ctypes.c_float(SOFTCAP if case.has("softcap") else 0.0)

    def call(held: object = held) -> torch.Tensor:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = start(arrays, sizes, scale, softcap, stream)
        assert status == 0, f"CUDA's error {status}"
        return output

    return call, output


def _file(folder: Path) -> Path:
    return folder / "flashinfer_128.so"
