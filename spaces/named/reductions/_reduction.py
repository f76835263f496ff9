"""Shared parts of the reductions over any axes."""

import re

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language import Program, program


def reduction(reducer: str, shape: str, over: str, dtype: str) -> Program:
    """Reduce an array of ``shape``, such as 8x16x32, over dimensions such as 0,2."""
    extents = extents_of(shape)
    axes = [f"d{place}" for place in over.split(",")]
    if unknown := [axis for axis in axes if axis not in extents]:
        last = len(extents) - 1
        raise InputError(
            f"over={shown(over)}: no dimension {unknown[0][1:]!r}; allowed: 0 to {last}"
        )
    kept = ", ".join(axis for axis in extents if axis not in axes)
    value = f"{reducer}[{', '.join(axes)}](x[{', '.join(extents)}])"
    return program(f"y[{kept}] = {value}" if kept else f"y = {value}", dtype=dtype, **extents)


def extents_of(shape: str) -> dict[str, int]:
    """Return the extents of the axes ``d0``, ``d1`` and so on of a shape such as 8x16x32."""
    if not re.fullmatch(r"\d{1,9}(x\d{1,9}){0,7}", shape):
        raise InputError(f"shape={shown(shape)} is no shape; allowed: such as 8x16x32")
    return {f"d{place}": int(extent) for place, extent in enumerate(shape.split("x"))}
