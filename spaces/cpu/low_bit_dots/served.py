"""Programs that have kernels by dot products of bytes, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.low_bit.served import why_not
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.language.tree import Read
from tilewright.spaces.low_bit.served import known_zero
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload

ACTIVATION = "int8"
"""The dtype of activations."""
LEAST_GROUP, MOST_GROUP = 16, 2**17
"""Neighbours that share scales: two pairs of codes for each lane, and as many as the sums of 32
bits of a lane allow."""
MOST_ZERO = 255
"""The largest size of a zero point."""


def why_no_dots(workload: Workload) -> str | None:
    """Say why a workload has no such kernel; return None if it has one."""
    if reason := why_not(workload):
        return reason
    assert isinstance(workload, Computation)
    product = coded_product_of(workload.program)
    assert isinstance(product, CodedProduct)
    codes, group = product.codes, product.group
    if product.table is not None or not codes.element.is_integer:
        what = "values of a table" if product.table is not None else codes.dtype
        return f"{codes.name} has {what}; needs whole numbers"
    found = product.activation
    if not isinstance(found, Read) or product.program.operand[found.name].dtype != ACTIVATION:
        return f"{found} is multiplied by codes; needs elements of {ACTIVATION} alone"
    if reason := _why_no_zero(product):
        return reason
    if group < product.terms and not LEAST_GROUP <= group <= MOST_GROUP:
        return f"groups of {group} along {product.depth}; allowed: {LEAST_GROUP} to {MOST_GROUP}"
    return None


def _why_no_zero(product: CodedProduct) -> str | None:
    known = known_zero(product)
    zero = known["zero"]
    if product.zero is None or known["whole"]:
        return None
    if zero is None or not zero.is_integer() or abs(zero) > MOST_ZERO:
        return f"the zero point {product.zero}; needs a whole number of up to 8 bits"
    return None
