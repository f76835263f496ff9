"""Operands of a Hopper product that stream through L2 instead of staying there.

An operand larger than L2 is not read from there again once the blocks at work have it. If it is
evicted first, operands that are read again stay, and so do outputs until memory has time for them.
"""

from __future__ import annotations

from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.workloads.array import Array

INTENSITY = 256
"""Operations per byte from which on any GPU with wgmma is limited by multiplying."""


def has_streams(product: Tiled, target: CudaTarget) -> bool:
    """Return true if memory limits the product and some operand is larger than L2."""
    whole, operands = product.whole, (product.left, product.right)
    is_read = whole.flops < INTENSITY * whole.least_bytes
    return is_read and any(is_streamed(operand, target) for operand in operands)


def is_streamed(operand: Array, target: CudaTarget) -> bool:
    """Return true if an operand is larger than L2."""
    return operand.span_bytes > target.l2_bytes
