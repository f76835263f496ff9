"""Find the values of reduced axes that the conditions of a program admit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from typing import Any

import numpy as np

from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.derivation.rounding.approximate_arrays import ApproximateArrays
from tilewright.spaces.derivation.rounding.rows import Rows, grid, union
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import ranges
from tilewright.spaces.numerics.interval import Interval, Rules
from tilewright.spaces.numerics.numbers import Arrays


def reached(program: Program, rows: Rows) -> dict[str, np.ndarray]:
    """Return the values of each reduced axis, rising, at which the conditions of some reduction can
    hold in some of the rows: for indices that an operand may hold, whichever these are."""
    found: dict[str, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for stage in program.stages:
            for axis, values in _reached(program, stage, rows).items():
                found[axis] = union(program.extent[axis], found.get(axis, values), values)
    return found


def _reached(program: Program, stage: Stage, rows: Rows) -> dict[str, np.ndarray]:
    axes = (*stage.axes, *stage.over)
    points = grid(rows.values(program, stage))
    meaning = _Possible(Rules(Arrays(), "float64"), {}, points, program)
    holding = np.ones((1,) * len(axes), bool)
    found = ranges(program).reductions.get(stage.name)
    ranged = found.conditions if found else ()
    for condition in program.bounding(stage):
        if condition in ranged:  # any entry may be any row's
            continue
        held = condition.fold(meaning)
        bounds = held.interval or Interval(held.value, held.value, False)
        holding = holding & (np.asarray(bounds.high, bool) | np.asarray(bounds.free, bool))
    return {axis: _along(holding, axes.index(axis), program.extent[axis]) for axis in stage.over}


def _along(holding: np.ndarray, dimension: int, extent: int) -> np.ndarray:
    """Return the places along a dimension at which something holds."""
    others = tuple(d for d in range(holding.ndim) if d != dimension)
    return np.flatnonzero(np.broadcast_to(holding.any(axis=others), extent))


@dataclass(frozen=True)
class _Possible(ApproximateArrays):
    """Entries are anything that an operand may hold."""

    def entry(self, name: str, indices: Sequence[Any]) -> tuple[Approximate, Any]:
        operand = self.program.operand.get(name)
        drawn = operand.drawn if operand else None
        low, high = (0.0, drawn.below - 1.0) if drawn else (-inf, inf)
        shape: tuple[int, ...] = reduce(np.broadcast_shapes, map(np.shape, indices), ())
        ends = (np.full(shape, low), np.full(shape, high), np.full(shape, drawn is None))
        return Approximate(np.zeros(shape), Interval(*ends)), True
