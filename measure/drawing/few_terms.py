"""Inputs with few nonzero elements, which show whether a long sum adds all its terms.

The error allowed of a sum grows faster than the number of its terms. If a kernel leaves out the
last five of 65,536 terms, its error may be no larger than rounding's. Where terms have an operand
as a factor, zeros in that operand add nothing and round nothing, and the remaining sum is short. So
candidates for the best are checked on such inputs, too. The remaining terms are those at which
tiles and parts begin and end, and random ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tilewright.measure.drawing.interfaces import Draw
from tilewright.measure.drawing.programs import FINAL_POINTS, ProgramDraw
from tilewright.measure.drawing.sampling import choose_places, sample
from tilewright.measure.drawing.tables import SHARE
from tilewright.spaces.derivation.algebra import factors
from tilewright.spaces.derivation.rounding.reductions import dtypes_of_factors
from tilewright.spaces.derivation.rounding.rows import reads
from tilewright.spaces.language.program import Operand, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.numerics.adding import error_of_sum

LARGEST_ERROR = 1 / 16
"""The error that is allowed of a sum of few terms, at most: one term is about a half."""
LEAST = 4
"""Places along an axis: its first and last, and random ones."""
NEIGHBOURS = 8
"""Terms beside each other that have the same sign."""


def with_few_terms(
    draw: Draw, most: int = FINAL_POINTS // SHARE, one_axis: bool = False
) -> Iterator[Draw]:
    """Replace most inputs of a problem by zeros. Yields nothing if its sums are short, or would not
    be nearly exact. It is judged at ``most`` points at most, as problems of
    :func:`measure.drawing.tables.with_other_tables` are.
    """
    if not isinstance(draw, ProgramDraw):
        return
    program = draw.program
    if sparse := sparse_operands(program):
        rows = sample(program, most, np.random.default_rng(0), one_axis)
        given = {name: own.applied(program, draw.inputs[name]) for name, own in sparse.items()}
        yield replace(draw, inputs={**draw.inputs, **given}, rows=rows)


@dataclass(frozen=True)
class SparseOperand:
    """An operand that is zero at all but ``count`` places along a dimension."""

    name: str
    dimension: int
    count: int

    def applied(self, program: Program, values: np.ndarray) -> np.ndarray:
        """Return the operand's ``values``, or zero. Small values count as one of the usual size,
        and neighbours have one sign, so that a lost term is seen, and so are several that are
        lost."""
        operand = program.operand[self.name]
        places = choose_places(operand.shape[self.dimension], self.count, np.random.default_rng(0))
        nonzero = np.moveaxis(values, self.dimension, -1)[..., places].astype(np.float64)
        signs = nonzero[..., np.arange(len(places)) // NEIGHBOURS * NEIGHBOURS]
        nonzero = np.copysign(np.maximum(abs(nonzero), abs(nonzero).mean()), signs)
        found = np.zeros(values.shape, operand.element.numpy)
        np.moveaxis(found, self.dimension, -1)[..., places] = nonzero
        return operand.array(found)


def sparse_operands(program: Program) -> Mapping[str, SparseOperand]:
    """Return the factors that make terms of long sums zero. None if terms of another sum are made
    of them: where most of these are equal, their roundings are, and do not cancel out."""
    sums = [stage for stage in program.stages if stage.reducer == "sum"]
    sparse = {own.name: own for stage in sums if (own := _sparse(program, stage))}
    touched = set(sparse)
    for stage in program.stages:
        if touched.isdisjoint(read.name for read in reads(program, stage)):
            continue
        touched.add(stage.name)
        if stage.reducer == "sum" and not _zero_where(stage, set(sparse)):
            return {}
    return sparse


def _sparse(program: Program, stage: Stage) -> SparseOperand | None:
    """Return a factor of the stage's terms, and where it is not zero; None if the sum is short."""
    terms, axis = prod(program.shape(stage.over)), max(stage.over, key=program.extent.__getitem__)
    names = dtypes_of_factors(program, stage)
    _, error = error_of_sum(terms, program.sums_in, names, 1.0, 1.0)
    extent = program.extent[axis]
    count = max(LEAST, int(2 * LARGEST_ERROR / error * extent / terms))
    if 2 * count >= extent:
        return None
    for read in _bare(stage.body):
        operand = program.operand.get(read.name)
        if operand and _may_be_zero(operand) and AxisValue(axis) in read.indices:
            return SparseOperand(read.name, read.indices.index(AxisValue(axis)), count)
    return None


def _may_be_zero(operand: Operand) -> bool:
    """Tell whether an operand takes zeros among other values of floating point."""
    return not operand.element.is_integer and not operand.coded


def _zero_where(stage: Stage, names: set[str]) -> bool:
    """Tell whether terms are zero exactly where one of these operands is zero: it is a factor, and
    occurs in no other factor.
    """
    bare = {read.name for read in _bare(stage.body)} & names
    others = [factor for factor in factors(stage.body) if not isinstance(factor, Read)]
    inside = {read.name for factor in others for read in factor.reads}
    return bool(bare) and inside.isdisjoint(names)


def _bare(body: Expression) -> list[Read]:
    return [factor for factor in factors(body) if isinstance(factor, Read)]
