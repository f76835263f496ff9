"""Places along short axes at which a map computes something else each: they are written side by
side, so that what they share is read and computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod

from tilewright.spaces.derivation.algebra import number
from tilewright.spaces.derivation.literals import is_place, worked_out
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Comparison, Expression, Select

MOST = 64
"""Places that are written side by side."""

Place = Mapping[str, int]


def places_apart(
    program: Program, stages: Sequence[Stage], bodies: Sequence[Expression]
) -> tuple[Place, ...]:
    """Return the places along all axes by which selections choose; a single one, of no axis, where
    there are none. Elements that lie side by side in memory stay one loop."""
    chosen = {axis for body in bodies for axis in _chosen_by(body)}
    fastest = {_fastest(program, stage) for stage in stages}
    axes: list[str] = []
    for axis in stages[0].axes:
        if axis in chosen - fastest and prod(program.shape((*axes, axis))) <= MOST:
            axes.append(axis)
    extents = (range(program.extent[axis]) for axis in axes)
    return tuple(dict(zip(axes, at, strict=True)) for at in product(*extents))


def at_place(body: Expression, place: Place) -> Expression:
    """Return what an expression is at a place."""
    if not place:
        return body
    axes: dict[str, Expression] = {axis: AxisValue(axis) for axis in body.axes}
    return worked_out(body.at(axes | {a: number(float(value)) for a, value in place.items()}))


def _chosen_by(body: Expression) -> Iterator[str]:
    """Yield the axes whose places selections choose by."""
    for node in body.walk():
        match node:
            case Select(Comparison(left=AxisValue(axis)) as condition) if is_place(condition):
                yield axis


def _fastest(program: Program, stage: Stage) -> str:
    """Return the axis along which elements of an output are side by side in memory."""
    (output,) = (output for output in program.outputs if output.name == stage.name)
    places = (stage.axes[dimension] for dimension in reversed(output.order))
    return next((axis for axis in places if program.extent[axis] > 1), "")
