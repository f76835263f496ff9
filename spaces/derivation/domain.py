"""Count the points of its axes at which a stage is needed, without those that conditions
exclude.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from tilewright.spaces.derivation.points import Points
from tilewright.spaces.language.affine import Affine, differences
from tilewright.spaces.language.cycles import in_cycles
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import range_among
from tilewright.spaces.language.tree import AxisValue, Comparison, Read

MAX_POINTS = 1 << 17
"""Points that are tried to count; where more would be, conditions are left out."""

Conditions = tuple[Comparison, ...]


def needed(program: Program) -> Mapping[str, Conditions]:
    """Find, for each stage, the conditions under which its elements are of use to any later stage.

    A product that only feeds reductions bounded by ``j <= i`` is needed where ``j <= i`` only. An
    output is needed everywhere.
    """
    found: dict[str, Conditions] = {o.name: () for o in program.outputs}
    found |= dict.fromkeys(in_cycles(program), ())  # of use to the next step
    for stage in reversed(program.stages):
        asked = found.setdefault(stage.name, ())
        bounds = dict.fromkeys((*asked, *program.bounding(stage)))
        for read in stage.body.reads:
            if read.name in program.stage:
                known = _carried(read, program.stage[read.name], bounds)
                before = found.get(read.name, known)
                found[read.name] = tuple(c for c in before if c in known)
    return found


def _carried(read: Read, stage: Stage, bounds: Iterable[Comparison]) -> Conditions:
    """Return the conditions on what reads a stage that are conditions on the stage's own axes."""
    if read.indices != tuple(map(AxisValue, stage.axes)):
        return ()
    return tuple(c for c in bounds if c.axes <= set(stage.axes))


def points(program: Program, axes: Iterable[str], conditions: Iterable[Comparison]) -> int:
    """Count the points of ``axes`` at which all ``conditions`` hold that name no other axis.

    Conditions on values of arrays are ignored, but for those of ranges
    (:mod:`spaces.language.ranges`), which have as many points as entries. So are those that more
    than :data:`MAX_POINTS` points would have to be tried for: the number is then an upper bound.
    """
    known = dict.fromkeys(axes)
    reading = [c for c in conditions if c.reads]
    if reading and (found := range_among(program, reading, known, known)) is not None:
        del known[found.row]
    bounding = [c for c in conditions if c.axes <= set(known) and not c.reads]
    named = [axis for axis in known if any(axis in c.axes for c in bounding)]
    others = prod(program.extent[axis] for axis in known if axis not in named)
    return others * _count(program, named, bounding)


def _count(program: Program, axes: Sequence[str], conditions: Sequence[Comparison]) -> int:
    if not axes:
        return 1
    solved = max(axes, key=lambda axis: program.extent[axis])
    by_condition = [list(differences(condition)) for condition in conditions]
    forms = [form for found in by_condition for form in found]
    plain = all(by_condition) and all(_affine(form, solved) for form in forms)
    tried = [axis for axis in axes if axis != solved] if plain else list(axes)
    size = prod(program.extent[axis] for axis in tried)
    if size > MAX_POINTS:
        return prod(program.extent[axis] for axis in axes)
    grid = Points({}, _grid(program, tried))
    if plain:
        return _solved(grid, forms, solved, program.extent[solved], size)
    inside = np.ones([program.extent[axis] for axis in tried], bool)
    for condition in conditions:
        inside &= grid.value(condition)
    return int(inside.sum())


def _affine(form: Affine, axis: str) -> bool:
    """Tell whether an axis occurs only by itself, not within a quotient or remainder."""
    return all(atom == AxisValue(axis) or axis not in atom.axes for atom, _ in form.terms)


def _solved(grid: Points, forms: Sequence[Affine], axis: str, extent: int, size: int) -> int:
    """Return the sum of the lengths of the intervals of ``axis`` in which no form is negative."""
    low, high = np.asarray(0), np.asarray(extent - 1)
    for form in forms:
        coefficient, rest = 0, np.asarray(form.constant)
        for atom, factor in form.terms:
            if atom == AxisValue(axis):
                coefficient = factor
            else:
                rest = rest + factor * grid.value(atom)
        if coefficient > 0:
            low = np.maximum(low, -(rest // coefficient))
        elif coefficient < 0:
            high = np.minimum(high, rest // -coefficient)
        else:
            high = np.where(rest >= 0, high, -1)
    lengths = np.maximum(high - low + 1, 0)
    return int(lengths.sum()) * (size // lengths.size)


def _grid(program: Program, axes: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Return the values of each axis along a dimension of its own."""
    rank = len(axes)
    return {
        axis: np.arange(program.extent[axis]).reshape([-1 if d == i else 1 for d in range(rank)])
        for i, axis in enumerate(axes)
    }
