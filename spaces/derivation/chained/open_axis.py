"""Axes of a chain whose extent calls may give: that of keys, and the slowest of those that number
products or rows."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.rows.passes import counting
from tilewright.spaces.workloads.open_axis import why_not_outermost


def why_not_open(chained: Chained, axis: str, *numbered: Sequence[Part]) -> str | None:
    """Say why an axis cannot be open; None if it can. ``numbered`` are the parts of which kernels
    have any number: products, rows or both."""
    program = chained.program
    if axis == chained.key.axis:
        counts = counting(program, program.stages)
        if counts:
            return f"{min(counts)} is the number of keys"
        return why_not_outermost(program, axis, reduced=True)
    if not any(parts and parts[0].name == parts[0].axis == axis for parts in numbered):
        of = "a batch or of rows" if len(numbered) > 1 else "a batch"
        return f"{axis} is neither the outermost axis of {of}, nor that of the keys"
    is_row = axis in {part.axis for part in chained.rows}
    return why_not_outermost(program, axis, reduced=is_row)
