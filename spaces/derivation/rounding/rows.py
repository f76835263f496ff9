"""Some rows of a program's outputs, which can be evaluated without the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from spaces.derivation.algebra import factors
from spaces.language.program import Program, Stage
from spaces.language.tree import AxisValue, Read


@dataclass(frozen=True)
class Rows:
    """The points of a program at which ``axis``, a :func:`row_axis`, has one of the values
    ``which``; these rise."""

    axis: str
    which: np.ndarray

    def places(self, program: Program) -> dict[str, tuple[int, np.ndarray]]:
        """The dimension of the rows in each stage, and in each operand, that is read at the row
        alone; and which rows there are."""
        stages = {s.name: s.axes.index(self.axis) for s in program.stages if self.axis in s.axes}
        operands: dict[str, set[int]] = {}
        for stage in program.stages:
            for read in _reads(program, stage):
                own = self._dimensions(program, stage, read)
                operands[read.name] = operands.get(read.name, own) & own
        found = {name: min(own) for name, own in operands.items() if own} | stages
        return {name: (dimension, self.which) for name, dimension in found.items()}

    def _dimensions(self, program: Program, stage: Stage, read: Read) -> set[int]:
        """The dimensions along which an operand is read at the row, and has all rows."""
        operand = program.operand.get(read.name)
        if operand is None or self.axis not in stage.axes:
            return set()
        indices = zip(read.indices, operand.shape, strict=True)
        wanted = AxisValue(self.axis), program.extent[self.axis]
        return {d for d, (i, n) in enumerate(indices) if i == wanted[0] and n >= wanted[1]}

    def values(self, program: Program, stage: Stage) -> dict[str, np.ndarray]:
        """The values at which each axis of a stage is evaluated, those that it reduces last."""
        values = {axis: np.arange(program.extent[axis]) for axis in (*stage.axes, *stage.over)}
        if self.axis in stage.axes:
            values[self.axis] = self.which
        return values


def row_axis(program: Program) -> str | None:
    """An axis along which the elements of outputs depend on no stage elsewhere along it; None if
    there is none. The one with least to do that all rows share, then for one row and for the
    factors of sums that all rows read; the longest of those."""
    sizes = {s.name: prod(program.shape((*s.axes, *s.over))) for s in program.stages}
    multiplied = [f for s in program.stages if s.reducer == "sum" for f in factors(s.body)]

    def cost(axis: str) -> tuple[int, int, int]:
        extent = program.extent[axis]
        own = sum(sizes[s.name] for s in program.stages if axis in s.axes)
        loaded = sum(prod(program.shape(tuple(f.axes))) for f in multiplied if axis not in f.axes)
        return sum(sizes.values()) - own, own // extent + loaded, -extent

    found = [axis for axis in program.extent if _are_independent(program, axis)]
    return min(found, key=cost, default=None)


def _are_independent(program: Program, axis: str) -> bool:
    if any(axis not in program.stage[output.name].axes for output in program.outputs):
        return False
    along = {s.name: s.axes.index(axis) for s in program.stages if axis in s.axes}
    return all(
        axis in stage.axes and read.indices[along[read.name]] == AxisValue(axis)
        for stage in program.stages
        for read in _reads(program, stage)
        if read.name in along
    )


def _reads(program: Program, stage: Stage) -> Iterator[Read]:
    for expression in (stage.body, *program.bounding(stage)):
        yield from expression.reads
