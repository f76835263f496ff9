"""Which programs have chained kernels on Hopper, and why others have none."""

from __future__ import annotations

from spaces.cuda.chained_hopper.chain import Softmax
from spaces.cuda.chained_hopper.plan import ELEMENTS, key_boxes, left_boxes, output_boxes
from spaces.cuda.chained_hopper.tiles import RowTiles
from spaces.derivation.algebra import ONE, times
from spaces.derivation.chained.view import Chained, chained_of
from spaces.language.tree import Binary, Expression, Read
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload

WIDEST = 256
"""Columns of one wgmma, and so of the sums; a score has as many terms, for shared memory's sake."""


def why_not_chained(workload: Workload) -> str | None:
    """The reason in words; None if there are kernels."""
    if not isinstance(workload, Computation):
        return "it is a product of matrices; needs a chain of reductions over its columns"
    found = chained_of(workload.program)
    if isinstance(found, str):
        return found
    return _why_no_products(found) or _why_no_chain(found) or _why_no_boxes(found)


def _why_no_products(chained: Chained) -> str | None:
    if len(chained.weighings) != 1:
        return f"{len(chained.weighings)} matrices are weighed; this template takes 1"
    for what in (chained.left, chained.right, chained.weighings[0].matrix):
        if chained.in_place(what) is None:
            return f"{what} is no array in place, which TMA could bring"
    arrays = [
        _dtype(chained, e) for e in (chained.left, chained.right, chained.weighings[0].matrix)
    ]
    if len(set(arrays)) > 1 or arrays[0] not in ELEMENTS:
        return f"operands are {', '.join(arrays)}; allowed: all {' or all '.join(ELEMENTS)}"
    for part in (chained.depth, chained.width):
        if part.extent > WIDEST:
            return f"{part.name} has {part.extent} points; allowed: up to {WIDEST}"
    return None


def _dtype(chained: Chained, expression: Expression) -> str:
    assert isinstance(expression, Read)
    return chained.program.operand[expression.name].dtype


def _why_no_chain(chained: Chained) -> str | None:
    if Softmax.scale_of(chained) is None:
        return "the chain is no softmax of scaled scores"
    if chained.factor != ONE:
        return f"scores have the factor {chained.factor}"
    if chained.conditions:
        return f"{chained.conditions[0]} bounds no keys by whole numbers"
    wide = [output for output in chained.outputs if output.wide]
    if len(wide) != 1 or len(chained.outputs) != 1:
        return f"there are {len(chained.outputs)} outputs; allowed: one, as wide as the matrix"
    weighing, total = chained.weighings[0].reduction, chained.scalars[1]
    divided = times(weighing.state, Binary("/", ONE, total.state))
    if wide[0].value != weighing.state or weighing.result != divided:
        return f"{wide[0].array.name} is more than weights times the matrix"
    return None


def _why_no_boxes(chained: Chained) -> str | None:
    tiles = RowTiles(chained)
    output = next(o for o in chained.outputs if o.wide)
    operand = left_boxes(tiles).array
    if output.array.dtype != operand.dtype:
        return f"{output.array.name} is {output.array.dtype}; allowed: {operand.dtype}"
    boxes = (
        left_boxes(tiles),
        key_boxes(tiles, chained.right, chained.depth.name, 1),
        key_boxes(tiles, chained.weighings[0].matrix, chained.width.name, 1),
        output_boxes(tiles, output),
    )
    return next((reason for box in boxes if (reason := box.why_not())), None)
