"""Find the entries of a program's operands that some of its rows read."""

from __future__ import annotations

import numpy as np

from tilewright.spaces.derivation.rounding.approximate_arrays import ApproximateArrays
from tilewright.spaces.derivation.rounding.rows import Places, Rows, grid, reads, union
from tilewright.spaces.language.program import Operand, Program, Stage
from tilewright.spaces.language.tree import Expression, Read
from tilewright.spaces.numerics.interval import Rules
from tilewright.spaces.numerics.numbers import Arrays


def places_read(program: Program, rows: Rows) -> dict[str, Places]:
    """Return the places of each operand at which :func:`~.allowance.allowed` needs it known for
    ``rows``, and at borders the nearest ones. Dimensions are left out along which all places are
    read, or some that are not known before other arrays are."""
    every = [(stage, read) for stage in program.stages for read in reads(program, stage)]
    return {
        o.name: _places(program, o, rows, [(s, r) for s, r in every if r.name == o.name])
        for o in program.operands
    }


def _places(
    program: Program, operand: Operand, rows: Rows, own: list[tuple[Stage, Read]]
) -> Places:
    found = {}
    for dimension, extent in enumerate(operand.shape):
        if any(read.indices[dimension].reads for _, read in own):
            continue
        each = [_values(program, stage, rows, read.indices[dimension]) for stage, read in own]
        values = union(extent, *(np.clip(places, 0, extent - 1) for places in each))
        if values.size < extent:
            found[dimension] = values
    return found


def _values(program: Program, stage: Stage, rows: Rows, index: Expression) -> np.ndarray:
    """List the values that an index takes in the rows, at each of their points."""
    axes = {a: values for a, values in rows.values(program, stage).items() if a in index.axes}
    rules = Rules(Arrays(), program.computed_in)
    at = index.fold(ApproximateArrays(rules, {}, grid(axes), program)).value
    return np.asarray(at).astype(np.int64)
