"""Operands of the epilogue that lie as the output does, such as a residual: TMA can bring them
to the buffers through which the output leaves."""

from __future__ import annotations

from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.segments import segments_of
from tilewright.spaces.cuda.hopper.tile import why_no_tensor_map
from tilewright.spaces.workloads.contraction import Operand
from tilewright.spaces.workloads.product import Product


def fetched_of(product: Tiled) -> Operand | None:
    """The first such operand of a product of matrices whose rows come in no segments; None if there
    is none."""
    if not isinstance(product, Product) or segments_of(product):
        return None
    if why_no_tensor_map(product.output):
        return None
    output = product.output
    if output.element.bytes not in (2, 4):
        return None
    found = (beside.array for beside in product.beside)
    return next((array for array in found if _lies_like(array, output)), None)


def _lies_like(array: Operand, output: Operand) -> bool:
    same = (array.axes, array.dtype, array.strides)
    return same == (output.axes, output.dtype, output.strides)
