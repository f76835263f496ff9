"""The programs that the template of placed products serves on a CPU, and reasons to refuse
others."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cpu.kept.prelude import prelude as kept_prelude
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.cpu.windows.copies.gathered import why_no_gathered
from tilewright.spaces.cpu.windows.copies.padded import padded_copy
from tilewright.spaces.cpu.windows.nest import RIGHT, Windows, windows, written
from tilewright.spaces.derivation.products.view import PlacedProduct, written_product_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.tree import Binary, Comparison, Expression, Read, Select
from tilewright.spaces.workloads.workload import Workload

MOST_BORDERS = 1 << 30
"""Bytes that any padded copy may take, however small its operand is."""


def prelude(workload: Workload, target: CpuTarget) -> str:
    """Return the C text in front of the kernels, shared by all templates that may serve the
    workload."""
    return kept_prelude(frozenset(workload.functions), target, "float32")


@lru_cache(maxsize=64)
def cached_windows(product: PlacedProduct) -> Windows:
    """Return the loops of a product; they are derived once."""
    return windows(product)


def why_no_windows(workload: Workload, target: CpuTarget) -> str | None:
    """Say why a workload has no kernel; return None if it has one."""
    product = written_product_of(workload)
    if isinstance(product, str):
        return product
    try:
        prelude(workload, target)
    except InputError as reason:
        return str(reason)
    return (
        _why_no_array(product)
        or next(filter(None, (_why_no_value(each.value) for each in product.finished)), None)
        or why_no_gathered(product.left, product.depth)
        or _why_no_nest(product)
        or _why_no_copy(product)
    )


def _why_no_array(product: PlacedProduct) -> str | None:
    program = product.program
    for array in (*program.operands, *program.outputs):
        if array.dtype not in FLOATS and array not in product.tables:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(FLOATS)}"
    for factor in (product.left, product.right):
        if factor.place.bounds and factor.operand.leading is not None:
            return f"{factor.operand.name} is a slice of a larger array; borders need whole ones"
    for read, place in product.places.items():
        if (dtype := program.operand[read.name].dtype) not in FLOATS:
            return f"{read} is a number of {dtype}; what is fused has {', '.join(FLOATS)}"
        if place.bounds:
            return f"{read} leaves {read.name}; what is fused is read within its array"
    return None


def _why_no_value(node: Expression) -> str | None:
    """Say why an expression has no code on vectors; return None if it has some."""
    if isinstance(node, Read):
        return None
    if isinstance(node, Binary) and node.operator in ("//", "%"):
        return f"{node} has {node.operator} of what is no index"
    if isinstance(node, Select) and not isinstance(node.condition, Comparison):
        return f"{node.condition} is no comparison"
    return next(filter(None, map(_why_no_value, node.children)), None)


def _why_no_nest(product: PlacedProduct) -> str | None:
    found = cached_windows(product)
    depth = {part.name for part in product.depth}
    parts = (*product.batch, *product.rows, *product.columns, *product.depth)
    for key, place in found.places.items():
        for part in parts:
            backward = place.coefficient(part.name) < 0 and part.extent > 1
            if backward and not (key == RIGHT and part.name in depth):
                name = key if isinstance(key, str) else key.name
                return f"the {name} array runs backwards along {part.name}; needs forward steps"
    column = found.nest(True).column
    for key, each in written(product).items():
        if column.extent > 1 and column.strides[key] != 1 and each.output.steps is None:
            return f"{each.output.name} has no columns side by side"
    return None


def _why_no_copy(product: PlacedProduct) -> str | None:
    """Say why borders are too wide for a copy that holds all of them; return None if they are
    not."""
    for factor in (product.left, product.right):
        copy = padded_copy(factor)
        if copy and copy.bytes > max(MOST_BORDERS, 16 * factor.operand.bytes):
            return f"{copy.operand.name} takes {copy.bytes} bytes with all of its borders"
    return None
