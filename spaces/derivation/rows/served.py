"""Refuse programs that are slow when computed as rows, on all targets."""

from __future__ import annotations

from tilewright.spaces.derivation.products.multiplied import matrix_products
from tilewright.spaces.language.program import Program


def why_product(program: Program) -> str | None:
    """Say where a program multiplies matrices; None if nowhere. Rows would read the factors of a
    product again for each of its elements.
    """
    for found in matrix_products(program):
        shared = [part.name for part in found.columns if part.extent > 1]
        return f"{found.stage.name} is a product of matrices with columns {', '.join(shared)}"
    return None
