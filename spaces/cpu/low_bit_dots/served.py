"""Programs that have kernels by dot products of bytes, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.low_bit.served import why_not
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.low_bit.served import why_no_bytes
from tilewright.spaces.workloads.workload import Workload

LEAST_GROUP, MOST_GROUP = 16, 2**17
"""Neighbours that share scales: two pairs of codes for each lane, and as many as the sums of 32
bits of a lane allow."""


def why_no_dots(workload: Workload) -> str | None:
    """Say why a workload has no such kernel; return None if it has one."""
    if reason := why_not(workload):
        return reason
    product = coded_product_of(workload.program)
    assert isinstance(product, CodedProduct)
    if reason := why_no_bytes(product):
        return reason
    group = product.group
    if group < product.terms and not LEAST_GROUP <= group <= MOST_GROUP:
        return f"groups of {group} along {product.depth}; allowed: {LEAST_GROUP} to {MOST_GROUP}"
    return None
