"""Tensors on a GPU for the operands of a workload."""

from __future__ import annotations

import torch

from tilewright.spaces.language.program import Operand
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload


def inputs_like(workload: Workload, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random inputs by name: uniform in [-1, 1), or indices within their limits, in the
    order in which workloads have them in memory."""
    generator = torch.Generator("cuda").manual_seed(seed)
    return {array.name: _drawn(array, generator) for array in workload.inputs}


def outputs_like(workload: Workload) -> list[torch.Tensor]:
    """Room for the outputs."""
    return [
        torch.empty(array.shape, device="cuda", dtype=getattr(torch, array.dtype))
        for array in workload.outputs
    ]


def _drawn(array: Array, generator: torch.Generator) -> torch.Tensor:
    kind = getattr(torch, array.dtype)
    drawn = array.drawn if isinstance(array, Operand) else None
    if drawn is not None:
        return torch.randint(
            drawn.below, array.shape, device="cuda", generator=generator, dtype=kind
        )
    lying = [array.shape[dimension] for dimension in array.order]
    values = torch.rand(lying, device="cuda", generator=generator).mul_(2).sub_(1).to(kind)
    return values.permute([array.order.index(d) for d in range(len(lying))])
