"""Some rows of a program's outputs, which can be evaluated without the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilewright.spaces.derivation.algebra import factors
from tilewright.spaces.language.cycles import cycles, step_of
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Read

Places = Mapping[int, np.ndarray]
"""The places at which an array is known, rising, by the dimension along which they lie."""


@dataclass(frozen=True)
class Rows:
    """The points of a program at which each axis of ``which``, some of its :func:`row_axes`, has
    one of the values there; these rise."""

    which: Mapping[str, np.ndarray] = field(default_factory=dict)

    def places(self, program: Program) -> dict[str, Places]:
        """Map each stage to the dimensions along which only some values are evaluated, with these
        values.
        """
        return {
            stage.name: {
                stage.axes.index(axis): values
                for axis, values in self.which.items()
                if axis in stage.axes
            }
            for stage in program.stages
        }

    def values(self, program: Program, stage: Stage) -> dict[str, np.ndarray]:
        """Return the values at which each axis of a stage is evaluated, those that it reduces
        last."""
        whole = {axis: np.arange(program.extent[axis]) for axis in (*stage.axes, *stage.over)}
        return whole | {a: values for a, values in self.which.items() if a in stage.axes}


def union(extent: int, *arrays: np.ndarray) -> np.ndarray:
    """Return the places below ``extent`` that are in some of the ``arrays``, rising. NumPy's own
    sets hash whole numbers, which takes a hundred times as long."""
    named = np.zeros(extent, bool)
    for places in arrays:
        named[places] = True
    return np.flatnonzero(named)


def grid(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values of each axis along a dimension of its own."""
    return {
        axis: own.reshape([-1 if other == axis else 1 for other in values])
        for axis, own in values.items()
    }


def row_axes(program: Program) -> tuple[str, ...]:
    """Return the axes along which the elements of outputs depend on no stage elsewhere along
    them."""
    return tuple(axis for axis in program.extent if _are_independent(program, axis))


def first_steps(program: Program, most: int, rows: Rows | None = None) -> Rows | None:
    """Return the ``rows``, all if there are none, at ``most`` steps of each cycle that are computed
    first, where no output depends on others; None for all rows at all steps."""
    found = {cycle.axis: cycle for cycle in cycles(program)}
    steps = {
        axis: np.sort(cycle.steps(program.extent[axis])[:most])
        for axis, cycle in sorted(found.items())
        if program.extent[axis] > most and _are_independent(program, axis, cycle.direction)
    }
    return Rows({**(rows.which if rows else {}), **steps}) if steps else rows


def row_axis(program: Program) -> str | None:
    """Return one of the :func:`row_axes`; None if there is none. The one with least to do that all
    rows share, then for one row and for the factors of sums that all rows read; the longest of
    those."""
    sizes = {s.name: prod(program.shape((*s.axes, *s.over))) for s in program.stages}
    multiplied = [f for s in program.stages if s.reducer == "sum" for f in factors(s.body)]

    def cost(axis: str) -> tuple[int, int, int]:
        extent = program.extent[axis]
        own = sum(sizes[s.name] for s in program.stages if axis in s.axes)
        loaded = sum(prod(program.shape(tuple(f.axes))) for f in multiplied if axis not in f.axes)
        return sum(sizes.values()) - own, own // extent + loaded, -extent

    return min(row_axes(program), key=cost, default=None)


def _are_independent(program: Program, axis: str, direction: int = 0) -> bool:
    """Tell whether stages are read at their own place along an axis, or at the step that cycles
    computed last which go in a ``direction``."""
    steps = direction and all(cycle.direction == direction for cycle in cycles(program))
    if any(axis not in program.stage[output.name].axes for output in program.outputs):
        return False
    along = {s.name: s.axes.index(axis) for s in program.stages if axis in s.axes}
    return all(
        axis in stage.axes
        and (
            (index := read.indices[along[read.name]]) == AxisValue(axis)
            or (steps and step_of(index, axis) == -direction)
        )
        for stage in program.stages
        for read in reads(program, stage)
        if read.name in along
    )


def reads(program: Program, stage: Stage) -> Iterator[Read]:
    """Yield the reads of a stage's body, and of the conditions that bound it."""
    for expression in (stage.body, *program.bounding(stage)):
        yield from expression.reads
