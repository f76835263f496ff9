"""The slowest loop of a map, whose turns calls of an open kernel give."""

from __future__ import annotations

from tilewright.spaces.derivation.maps.plane import Plane
from tilewright.spaces.workloads.open_axis import why_not_outermost


def why_no_open_loop(plane: Plane, axis: str) -> str | None:
    """Say why an axis cannot be open: only the outermost axis of all arrays can; None if it can."""
    program = plane.view.program
    reason = why_not_outermost(program, axis)
    if reason is None and axis != _outermost_axis(plane):
        return f"{axis} is not the outermost axis of {program.outputs[0].name} in memory"
    return reason


def turns_each(plane: Plane, axis: str) -> int:
    """Return the turns of the slowest loop at each point of its outermost axis."""
    return plane.view.loops[0].extent // plane.view.program.extent[axis]


def _outermost_axis(plane: Plane) -> str | None:
    """Return the outermost axis of several points, which the slowest loop runs along; None if there
    is none."""
    program = plane.view.program
    output = program.outputs[0]
    axes = enumerate(program.stage[output.name].axes)
    found = (a for place, a in axes if output.is_outermost(place) and program.extent[a] > 1)
    return next(found, None)
