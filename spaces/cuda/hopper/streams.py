"""Operands of a Hopper contraction that go through L2 rather than staying there.

What such an operand brings to L2 is not read again once its blocks have it. Where it may leave
first, what others read again stays, and so does what is written until memory has time for it.
"""

from __future__ import annotations

from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.workloads.array import Array

INTENSITY = 256
"""Operations for each byte, from which on multiplying takes the time on any GPU with wgmma."""


def has_streams(product: Tiled, target: CudaTarget) -> bool:
    """Whether reading takes the time, and some operand is streamed."""
    workload, operands = product.workload, (product.left, product.right)
    is_read = workload.flops < INTENSITY * workload.least_bytes
    return is_read and any(is_streamed(operand, target) for operand in operands)


def is_streamed(operand: Array, target: CudaTarget) -> bool:
    """Whether an operand is larger than L2."""
    return operand.span_bytes > target.l2_bytes
