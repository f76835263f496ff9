"""Operands of the epilogue with the output's layout, such as a residual.

TMA can fetch such an operand into the buffers of shared memory through which the output leaves.
"""

from __future__ import annotations

from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.segments import segments_of
from tilewright.spaces.cuda.hopper.tile import why_no_tensor_map
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.product import Product


def fetched_of(product: Tiled) -> Operand | None:
    """Return the first operand of the epilogue with the output's axes, dtype and strides.

    None if there is none, if the product is no plain one of matrices, if its rows come in segments,
    if several arrays are written, or if TMA cannot store the output in elements of 2 or 4 bytes.
    """
    if not isinstance(product, Product) or len(product.written) > 1 or segments_of(product):
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
