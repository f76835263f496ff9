"""Reasons why products of packed weights have no kernels."""

from __future__ import annotations

from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.workloads.packing import TERMS
from tilewright.spaces.workloads.product import Product


def why_not_packed(product: Product, target: CpuTarget) -> str | None:
    """Say why no kernel reads the packed weights of a product; None if one does, or none are
    packed."""
    if product.left.packed:
        return f"{product.left.name} is packed; needs its columns along those of the output"
    if product.right.packed and TERMS[product.right.dtype] > 1 and not target.bf16_dot:
        return f"{product.right.name} is packed in pairs; needs instructions for their dot products"
    return None


def why_not_thin(product: Product) -> str | None:
    """Say why packed weights need pairs of the left operand that it lacks; None if they do not."""
    terms = TERMS[product.right.dtype]
    if terms == 1 or product.has_pairs(product.left):
        return None
    return f"{product.left.name} has no whole pairs along {product.depth} in memory"
