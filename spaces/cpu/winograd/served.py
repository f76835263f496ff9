"""The programs that have kernels of short windows on a CPU, and reasons why others have none."""

from __future__ import annotations

from math import isfinite

from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.windows.nest import OUTPUT
from tilewright.spaces.cpu.windows.served import why_no_windows
from tilewright.spaces.cpu.winograd.rules import DEVIATIONS, deviations
from tilewright.spaces.cpu.winograd.view import LEAST_OUTPUTS, SquareWindows, square_windows_of
from tilewright.spaces.derivation.products.view import PlacedProduct, extent, placed_product_of
from tilewright.spaces.workloads.workload import Workload

LEAST_CHANNELS = 8
"""The least channels for which it pays to transform squares."""


def why_no_winograd(workload: Workload, target: CpuTarget) -> str | None:
    """Say why a workload has no such kernel; return None if it has one."""
    product = placed_product_of(workload)
    if isinstance(product, str):
        return product
    if reason := why_no_windows(workload, target) or _why_no_product(product):
        return reason
    view = square_windows_of(product)
    return view if isinstance(view, str) else _why_no_squares(view)


def _why_no_product(product: PlacedProduct) -> str | None:
    left, right = product.left, product.right
    for factor in (left, right):
        if factor.operand.dtype != "float32":
            return f"{factor.operand.name} is {factor.operand.dtype}; allowed: float32"
        if factor.operand.leading is not None:
            return f"{factor.operand.name} is a slice of a larger array; needs whole ones"
    if product.segments or left.gather or extent(product.batch) > 1:
        return "it is a batch of products; needs one"
    if right.place.bounds:
        return f"{right.operand.name} has borders; needs taps that all exist"
    if not isfinite(left.place.outside or 0.0):
        return f"{left.operand.name} is {left.place.outside} outside; needs a number"
    return None


def _why_no_squares(view: SquareWindows) -> str | None:
    if view.channels.extent < LEAST_CHANNELS:
        return f"there are {view.channels.extent} channels; needs {LEAST_CHANNELS}"
    if view.column.extent > 1 and view.column.strides[OUTPUT] != 1:
        return f"{view.product.output.name} has no columns side by side"
    allowed = deviations(view, LEAST_OUTPUTS)
    if allowed < DEVIATIONS:
        return (
            f"{allowed:.1f} standard deviations of an output's error are allowed; "
            f"needs {DEVIATIONS:.0f}"
        )
    return None
