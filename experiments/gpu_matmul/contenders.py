"""The compared products, as functions without arguments that queue their work. Needs a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch

from experiments.gpu_matmul.cases import Case

Call = Callable[[], object]


def tensors(case: Case, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random A and B, uniform in [-1, 1), and room for C."""
    generator = torch.Generator("cuda").manual_seed(seed)

    def draw(rows: int, columns: int) -> torch.Tensor:
        values = torch.rand(rows, columns, device="cuda", generator=generator) * 2 - 1
        return values.to(getattr(torch, case.dtype))

    a = draw(case.m, case.k)
    b = draw(case.n, case.k).t() if case.b == "col" else draw(case.k, case.n)
    kind = getattr(torch, case.workload.outputs[0].dtype)
    return a, b, torch.empty(case.m, case.n, device="cuda", dtype=kind)


def cublas(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Call:
    """torch.matmul, which calls cuBLAS; float8 by torch's scaled product with scales of one."""
    if a.dtype.itemsize > 1:
        return lambda: torch.matmul(a, b, out=c)
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(
        a, b, scale_a=one, scale_b=one, out_dtype=c.dtype, use_fast_accum=True
    )


def triton_call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Call:
    """Return our Triton kernel, autotuned on these tensors."""
    from experiments.gpu_matmul.triton_matmul import matmul

    matmul(a, b, c)
    return lambda: matmul(a, b, c)


def compiled(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Call:
    """torch.compile, which chooses among cuBLAS, Triton templates and code of its own."""
    torch._dynamo.reset()  # sizes seen before would make these dynamic
    function = torch.compile(torch.matmul, mode="max-autotune-no-cudagraphs", dynamic=False)
    function(a, b)
    return lambda: function(a, b)


def largest_error(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, rows: int = 64) -> float:
    """Return the largest error of ``rows`` random rows of ``c`` against float64."""
    chosen = torch.randperm(a.shape[0], device="cuda")[:rows]
    exact = a.float()[chosen].double() @ b.float().double()  # float8 has no indexing
    return float((c.float()[chosen].double() - exact).abs().max())
