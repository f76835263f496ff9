"""Elements of operands that a program hides: no judged row needs what they hold.

Conditions hide terms of a reduction, a selection the side that it does not choose, and a table what
none of its entries names. A stage's element is needed where one that reads it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from tilewright.spaces.derivation.rounding.allowance import evaluated
from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.derivation.rounding.approximate_arrays import ApproximateArrays
from tilewright.spaces.derivation.rounding.ranged_arrays import RangedArrays
from tilewright.spaces.derivation.rounding.rows import Places, Rows, reads
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import ranges
from tilewright.spaces.language.tree import Expression, Read, Select

MOST = 1 << 23
"""Points at which reads are followed; of reads at more all of the array counts as needed."""


def hides(program: Program) -> bool:
    """Tell whether a program may hide elements of an operand of floating point."""
    every = [read for stage in program.stages for read in reads(program, stage)]
    chosen = any(isinstance(node, Select) for stage in program.stages for node in stage.body.walk())
    named = any(index.reads for read in every for index in read.indices)
    return bool(program.conditions) or chosen or named


def hidden(
    program: Program, inputs: Mapping[str, np.ndarray], rows: Rows | None
) -> dict[str, np.ndarray]:
    """Find the elements of each operand that are hidden from these rows, or from all rows if
    None.
    """
    rows = rows or Rows()
    meanings = evaluated(program, inputs, rows)
    needed = _Needed(program, rows.places(program), _nothing(program, rows, meanings))
    for output in program.outputs:
        needed.where[output.name][...] = True
    for stage in reversed(program.stages):
        needed.read_by(stage, meanings[stage.name])
    return {o.name: ~needed.where[o.name] for o in program.operands}


def _nothing(
    program: Program, rows: Rows, meanings: Mapping[str, ApproximateArrays]
) -> dict[str, np.ndarray]:
    shapes = {operand.name: operand.shape for operand in program.operands}
    for stage in program.stages:
        if stage.name in ranges(program).along:
            axes = meanings[stage.name].kept(stage).axes
            shapes[stage.name] = tuple(values.size for values in axes.values())
            continue
        values = rows.values(program, stage)
        shapes[stage.name] = tuple(values[axis].size for axis in stage.axes)
    return {name: np.zeros(shape, bool) for name, shape in shapes.items()}


@dataclass(frozen=True)
class _Needed:
    """``where`` elements of operands and stages are needed; of stages at their ``places``."""

    program: Program
    places: Mapping[str, Places]
    where: dict[str, np.ndarray]

    def read_by(self, stage: Stage, meaning: ApproximateArrays) -> None:
        """Add what the needed elements of a stage read."""
        own = self.where[stage.name]
        if isinstance(meaning, RangedArrays):
            assert meaning.walk is not None
            self.where[meaning.walk.range.table][...] = True
            mask = meaning.spread(stage, own)
        else:
            mask = own.reshape(own.shape + (1,) * len(stage.over))
        for condition in self.program.bounding(stage):
            self._visit(condition, mask, meaning)
            mask = mask & _may_hold(condition.fold(meaning), True)
        self._visit(stage.body, mask, meaning)

    def _visit(self, node: Expression, mask: Any, meaning: ApproximateArrays) -> None:
        if isinstance(node, Select):
            condition = node.condition.fold(meaning)
            self._visit(node.condition, mask, meaning)
            self._visit(node.then, mask & _may_hold(condition, True), meaning)
            self._visit(node.otherwise, mask & _may_hold(condition, False), meaning)
            return
        if isinstance(node, Read):
            self._mark(node, mask, meaning)
        for child in node.children:
            self._visit(child, mask, meaning)

    def _mark(self, read: Read, mask: Any, meaning: ApproximateArrays) -> None:
        where = self.where[read.name]
        if isinstance(meaning, RangedArrays) and read.name in meaning.along:
            where |= meaning.gathered(read.name, mask)
            return
        if not read.indices:
            where[...] |= bool(np.any(mask))
            return
        at = [np.asarray(index.fold(meaning).value).astype(np.int64) for index in read.indices]
        at = [index.reshape((1,) * (np.ndim(mask) - index.ndim) + index.shape) for index in at]
        shape = np.broadcast_shapes(*(index.shape for index in at))
        mask = np.asarray(mask)
        gone = tuple(d for d, n in enumerate(shape) if n == 1 and mask.shape[d] > 1)
        mask = mask.any(axis=gone, keepdims=True)
        if np.prod(np.broadcast_shapes(shape, mask.shape)) > MOST:
            where[...] = True
            return
        extents = self._shape(read.name)
        inside = [(index >= 0) & (index < n) for index, n in zip(at, extents, strict=True)]
        mask = mask & reduce(np.logical_and, inside)
        at = [np.clip(index, 0, n - 1) for index, n in zip(at, extents, strict=True)]
        for dimension, places in self.places.get(read.name, {}).items():
            at[dimension] = np.searchsorted(places, at[dimension]).clip(max=places.size - 1)
        where[tuple(np.broadcast_to(index, mask.shape)[mask] for index in at)] = True

    def _shape(self, name: str) -> tuple[int, ...]:
        if name in self.program.operand:
            return self.program.operand[name].shape
        return self.program.shape(self.program.stage[name].axes)


def _may_hold(condition: Approximate, wanted: bool) -> Any:
    """Tell where kernels may find a condition true (``wanted``), or false."""
    if condition.interval is None:
        return np.asarray(condition.value, bool) == wanted
    b = condition.interval
    return np.asarray(b.high if wanted else ~np.asarray(b.low, bool), bool) | b.free
