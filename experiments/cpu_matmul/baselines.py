"""The libraries we compare with, each as a function without arguments, at its best here.

NumPy multiplies with the OpenBLAS it ships. ``torch.mm`` and ``addmm`` use what the build of
torch prefers. oneDNN's linear wants its weight as [n, k]: it gets a contiguous copy of B in that
order, made outside the timing, which is the layout it is fastest with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np
import torch

from experiments.cpu_matmul.cases import Case

Call = Callable[[], object]


def as_tensor(array: np.ndarray) -> torch.Tensor:
    """Return the same memory as a tensor; bfloat16 by its bits, since NumPy's is foreign to
    torch."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """Return the same memory as an array; the other way round."""
    if tensor.dtype == torch.bfloat16:
        bits: np.ndarray = tensor.view(torch.uint16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    return tensor.numpy()


def baselines(case: Case, inputs: Mapping[str, np.ndarray]) -> dict[str, Call]:
    """Library name to a call that computes the case's result anew."""
    a, b = as_tensor(inputs["A"]), as_tensor(inputs["B"])
    weight = b.t().contiguous()
    if not case.fused:
        calls: dict[str, Call] = {
            "torch.mm": lambda: torch.mm(a, b),
            "onednn.linear": lambda: torch.ops.mkldnn._linear_pointwise(
                a, weight, None, "none", [], ""
            ),
        }
        if case.dtype == "float32":
            out = np.empty((case.m, case.n), np.float32)
            calls["numpy"] = lambda: np.matmul(inputs["A"], inputs["B"], out=out)
        return calls
    bias = as_tensor(inputs["bias"])
    compiled = torch.compile(_gelu_linear)
    compiled_weight = torch.compile(_gelu_weight)
    return {
        "torch.eager": lambda: _gelu_linear(a, b, bias),
        "torch.eager.linear": lambda: _gelu_weight(a, weight, bias),
        "torch.compile": lambda: compiled(a, b, bias),
        "torch.compile.linear": lambda: compiled_weight(a, weight, bias),
        "onednn.linear.gelu": lambda: torch.ops.mkldnn._linear_pointwise(
            a, weight, bias, "gelu", [], "none"
        ),
    }


def _gelu_linear(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(torch.addmm(bias, a, b))


def _gelu_weight(a: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(torch.nn.functional.linear(a, weight, bias))
