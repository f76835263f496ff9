"""The variables of C code for the axes of a product with packed codes, alike for all targets."""

from __future__ import annotations

from tilewright.spaces.derivation.products.coded import CodedProduct


def axis_variable(product: CodedProduct, axis: str) -> str:
    """Return the variable that expressions have for an axis."""
    return f"i{[name for name, _ in product.program.extents].index(axis)}"


def row_axes(product: CodedProduct, integer: str, row: str) -> list[str]:
    """Return C declarations of the axes of the row with the number ``row``, of the C type
    ``integer``."""
    lines, step = [], 1
    for axis in reversed(product.rows):
        extent = product.program.extent[axis]
        lines.append(f"const {integer} {axis_variable(product, axis)} = {row} / {step} % {extent};")
        step *= extent
    return lines
