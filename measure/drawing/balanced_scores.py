"""Balance scores: one is above many equal ones by just so much that they weigh about as much
together.

Kernels of attention correct what they have summed up when a later tile has a greater score; some
let that wait until scores rose by eight powers of two (5.5). A mistake in the correction shows
where scores rose by a little more: if by much more, nothing that was corrected counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilewright.measure.drawing.hidden import hidden, hides
from tilewright.measure.drawing.scores import SCORES, scores_of
from tilewright.measure.drawing.shifts import Shift, SinglePlace
from tilewright.spaces.derivation.rounding.allowance import computed
from tilewright.spaces.derivation.rounding.rows import Rows, row_axes
from tilewright.spaces.language.program import Program

ABOVE = 6.0
"""The distance of the greatest of these scores from the others of its row."""
ROWS = 4
"""Rows along each axis, the last ones, of which one has it."""
STEPS = 3
"""Times that the operand's scale is corrected, for scores that are not proportional to it."""
FARTHEST = 1e3
"""The most that elements are multiplied by."""


def balanced(
    shift: Shift, program: Program, inputs: Mapping[str, np.ndarray], rows: Rows | None
) -> Shift:
    """Return the shift of one element with a scale by which the greatest score of the ``rows`` has
    its value; as it is where no scale does. Instead of the last element it is the last one that is
    not hidden from all rows.
    """
    scores = scores_of(program)
    if scores is None or shift.one is None:
        return shift
    one = _seen(shift.one, shift.operand.name, program, inputs, rows)
    axes = scores.program.stages[-1].axes
    axis, other = axes.index(one.axis), 0 if one.place else -1
    which = {axis: np.arange(program.extent[axis]) for axis in row_axes(program)}
    which |= rows.which if rows else {}
    compared = axes[len(axes) - scores.over :]
    few = Rows({name: own[-ROWS:] for name, own in which.items() if name not in compared})
    found = replace(shift, one=one)
    for _ in range(STEPS):
        given = {**inputs, **found.applied(inputs)}
        values = computed(scores.program, given, few)[SCORES]
        with np.errstate(invalid="ignore"):
            above = values.take(one.place, axis) - values.take(other, axis)
        most = max(above.min(), above.max(), key=abs)
        scale = found.scale * ABOVE / most if most else np.inf
        if not abs(scale) <= FARTHEST:
            return shift
        found = replace(found, scale=float(scale))
    return found


def _seen(
    one: SinglePlace,
    name: str,
    program: Program,
    inputs: Mapping[str, np.ndarray],
    rows: Rows | None,
) -> SinglePlace:
    """Return the place, or the last one before it that is not hidden."""
    if one.place == 0 or not hides(program):
        return one
    mask = np.moveaxis(hidden(program, inputs, rows)[name], one.dimension, 0)
    seen = np.flatnonzero(~mask.reshape(len(mask), -1).all(axis=1))
    return replace(one, place=int(seen[-1])) if seen.size else one
