"""Requirements of templates of maps on a program, on all targets."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from tilewright.spaces.derivation.maps.plane import Plane, plane_of
from tilewright.spaces.derivation.maps.view import map_of
from tilewright.spaces.language.program import Program


@lru_cache(maxsize=64)
def cached_plane(program: Program) -> Plane:
    """Return the plane of a program, derived once; :class:`InputError` if it is no map."""
    return plane_of(map_of(program))


def why_no_array(
    plane: Plane, values: Collection[str], tables: Collection[str], slices: bool = False
) -> str | None:
    """Say why kernels whose elements and indices have these dtypes, and which take ``slices`` of
    larger arrays or not, cannot read or write an array, in words; None if they can."""
    program = plane.view.program
    for array in (*program.operands, *program.outputs):
        allowed = tables if plane.view.is_table(array.name) else values
        if array.dtype not in allowed:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(allowed)}"
        if array.leading is not None and not slices:
            return f"{array.name} is a slice of a larger array; a map takes whole ones"
    return None
