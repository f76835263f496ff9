"""Programs that have kernels with packed codes, and reasons why others have none."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from tilewright.spaces.derivation.algebra import constant
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.language.tree import Read
from tilewright.spaces.loops.plan import Plan
from tilewright.spaces.low_bit.order import DEPTH
from tilewright.spaces.workloads.workload import Workload

ACTIVATION = "int8"
"""The dtype of activations that are multiplied as whole numbers."""
MOST_ZERO = 255
"""The largest size of a zero point that is a whole number of 8 bits."""
STEP = 8
"""Neighbours along the depth that kernels take at a time."""


def why_no_codes(workload: Workload, dtypes: Collection[str]) -> str | None:
    """Return the reason in words; None if there are kernels, of arrays of these ``dtypes``."""
    product = coded_product_of(workload.program)
    if isinstance(product, str):
        return product
    for array in (*workload.program.operands, *workload.program.outputs):
        if not array.packed and array.dtype not in dtypes:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(dtypes)}"
    if workload.accumulator != "float32":
        return f"sums in {workload.accumulator}; allowed: float32"
    return _why_no_depth(product) or _why_not_written(product)


def _why_no_depth(product: CodedProduct) -> str | None:
    depth, terms, group = product.depth, product.terms, product.group
    if terms % STEP:
        return f"{depth} is {terms}; allowed: multiples of {STEP}"
    if group < terms and group % STEP:
        return f"groups of {group} along {depth}; allowed: multiples of {STEP}"
    if group < terms and group % DEPTH and DEPTH % group:
        return f"groups of {group} along {depth}; allowed: 8, 16, 32 and multiples of {DEPTH}"
    return None


def _why_not_written(product: CodedProduct) -> str | None:
    if len(Plan(product.last).nests) > 1:
        return "several stages follow the sum; needs one map at most"
    return None


def why_no_bytes(product: CodedProduct) -> str | None:
    """Return the reason why codes, zero points and activations are not all whole numbers of up to 8
    bits; None if they are."""
    codes, found = product.codes, product.activation
    if product.table is not None:
        return f"{codes.name} has values of a table; needs whole numbers"
    if not codes.element.is_integer:
        return f"{codes.name} has {codes.dtype}; needs whole numbers"
    if not isinstance(found, Read) or product.program.operand[found.name].dtype != ACTIVATION:
        return f"{found} is multiplied by codes; needs elements of {ACTIVATION} alone"
    known = known_zero(product)
    zero = known["zero"]
    if product.zero is None or known["whole"]:
        return None
    if zero is None or not zero.is_integer() or abs(zero) > MOST_ZERO:
        return f"the zero point {product.zero}; needs a whole number of up to 8 bits"
    return None


class KnownZero(TypedDict):
    """The facts of zero points that :class:`~spaces.low_bit.decoding.CodeValues` takes."""

    zero: float | None
    whole: bool


def known_zero(product: CodedProduct) -> KnownZero:
    """Return the zero point if it is a number, and whether those of an operand are whole numbers of
    up to 8 bits."""
    whole = False
    if isinstance(product.zero, Read):
        element = product.program.operand[product.zero.name].element
        whole = element.is_integer and element.bits <= 8
    return {"zero": None if product.zero is None else constant(product.zero), "whole": whole}
