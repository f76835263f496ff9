"""Programs whose constants are numbers where they were read: what is zero of them vanishes.

The axes of a constant are written out. A sum over such axes becomes the explicit sum of the terms
that are not zero, the factors that the fewest axes change innermost: they are the same for many
elements. Along axes that a stage keeps, a selection says which sum each of its elements is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product as points_of
from math import prod

from tilewright.spaces.derivation.algebra import ZERO, constant, number, product
from tilewright.spaces.derivation.literals import combined, multiplied, total
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.constants import constant_arrays
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.reading.source import MAX_LENGTH
from tilewright.spaces.language.reading.validation import check
from tilewright.spaces.language.tree import (
    AxisValue,
    Comparison,
    Expression,
    Number,
    Read,
    Select,
)

MOST_POINTS = 1 << 16
"""Points at which the constants of a stage are read, at most."""

At = Mapping[str, int]


def without_constants(program: Program) -> Program:
    """Return the program with numbers for its constants; :class:`InputError` where it would be too
    large, or has no such form."""
    if not program.constants:
        return program
    _check(program)
    unrolling = _Unrolling(program)
    stages = tuple(unrolling.stage(stage) for stage in program.stages)
    read = {r.name for body in (*(s.body for s in stages), *program.conditions) for r in body.reads}
    kept = tuple(o for o in program.operands if o.elements is None)
    named = read | {output.name for output in program.outputs}
    for name in (*(operand.name for operand in kept), *(stage.name for stage in stages)):
        if name not in named:
            raise InputError(f"{name} is multiplied by zeros of constants alone; remove it")
    used = {axis for stage in stages for axis in (*stage.axes, *stage.over)}
    extents = tuple((axis, extent) for axis, extent in program.extents if axis in used)
    made = replace(program, extents=extents, operands=kept, stages=stages)
    if len(made.text) > MAX_LENGTH:
        names = ", ".join(c.name for c in program.constants)
        raise InputError(
            f"with {names} written out the program has {len(made.text)} characters; allowed: "
            f"{MAX_LENGTH}; a large constant is an operand"
        )
    check(made)
    return made


def _check(program: Program) -> None:
    names = {constant.name for constant in program.constants}
    for condition in program.conditions:
        if found := next((r.name for r in condition.reads if r.name in names), None):
            raise InputError(f"'where {condition}' reads the constant {found}; allowed: select")
    for read in (r for stage in program.stages for r in stage.body.reads if r.name in names):
        if found := next((r.name for index in read.indices for r in index.reads), None):
            raise InputError(
                f"{read} takes its place in the constant {read.name} from {found}; allowed: axes "
                f"and numbers; {read.name} is an operand where a table chooses its elements"
            )


class _Unrolling:
    """Writes the constants of stages out."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._arrays = constant_arrays(program)

    def stage(self, stage: Stage) -> Stage:
        """Return a stage without constants; the same one if it has none."""
        reads = [read for read in stage.body.reads if read.name in self._arrays]
        if not reads:
            return stage
        axes = frozenset[str]().union(*(read.axes for read in reads))
        over = tuple(axis for axis in stage.over if axis in axes)
        kept = tuple(axis for axis in stage.axes if axis in axes)
        self._check(stage, over, kept)
        found = {
            at: self._body(stage, dict(zip(kept, at, strict=True)), over)
            for at in points_of(*(range(self._program.extent[axis]) for axis in kept))
        }
        left = tuple(axis for axis in stage.over if axis not in over)
        reducer = stage.reducer if left else None
        return replace(stage, reducer=reducer, over=left, body=_chosen(kept, found))

    def _check(self, stage: Stage, over: Sequence[str], kept: Sequence[str]) -> None:
        points = prod(self._program.shape((*over, *kept)))
        names = ", ".join(sorted({r.name for r in stage.body.reads} & {*self._arrays}))
        if points > MOST_POINTS:
            raise InputError(
                f"{stage.name} reads the constants {names} at {points} points of "
                f"{', '.join((*over, *kept))}; allowed: {MOST_POINTS}; a large one is an operand"
            )
        if over and stage.reducer != "sum":
            raise InputError(
                f"{stage.name} is a {stage.reducer} over {', '.join(over)} of the constants "
                f"{names}; allowed: sum"
            )
        for condition in self._program.bounding(stage):
            if both := sorted(condition.axes & {*over, *kept}):
                raise InputError(
                    f"'where {condition}' bounds {both[0]}, an axis of the constants {names}; "
                    "allowed: zeros in their place"
                )

    def _body(self, stage: Stage, kept: At, over: Sequence[str]) -> Expression:
        """Return the body where axes that are kept have these places, and no axis of a constant is
        summed any more."""
        body = self._read_at(stage.body, kept)
        if not over:
            return body
        found = tuple(multiplied(body))
        beside = {axis: self._beside(found, axis, over) for axis in over}
        return self._sum(found, sorted(over, key=lambda axis: -beside[axis]))

    def _beside(self, terms: Sequence[Expression], axis: str, over: Sequence[str]) -> int:
        """Count the elements of all axes but ``over`` that factors along an axis differ by."""
        others = (factor.axes - {*over} for factor in terms if axis in factor.axes)
        return prod(self._program.shape(tuple(frozenset[str]().union(*others))))

    def _sum(self, terms: Sequence[Expression], over: Sequence[str]) -> Expression:
        """Return the sum of the product of factors over axes, the first of them outermost."""
        if not over:
            return product(terms)
        axis, *rest = over
        added = []
        for place in range(self._program.extent[axis]):
            fixed = [self._at(factor, {axis: place}) for factor in terms]
            if ZERO not in fixed:
                inner = [factor for factor in fixed if not factor.axes.isdisjoint(rest)]
                outer = [factor for factor in fixed if factor.axes.isdisjoint(rest)]
                added.append(product([self._sum(inner, rest), *outer]))
        return total(added)

    def _read_at(self, node: Expression, at: At) -> Expression:
        """Return an expression whose reads of constants are those at some places."""
        if isinstance(node, Read) and node.name in self._arrays:
            return self._at(node, at)
        children = tuple(self._read_at(child, at) for child in node.children)
        return combined(node if children == node.children else node.with_children(children))

    def _at(self, node: Expression, at: At) -> Expression:
        """Return an expression at some places of axes, with elements of constants as numbers."""
        if isinstance(node, AxisValue):
            return number(float(at[node.name])) if node.name in at else node
        children = tuple(self._at(child, at) for child in node.children)
        made = combined(node if children == node.children else node.with_children(children))
        return self._element(made) if isinstance(made, Read) else made

    def _element(self, read: Read) -> Expression:
        """Return the element that a read of a constant has, once its indices are numbers, or 0 as
        soon as all are that it may have; else the read itself."""
        if read.name not in self._arrays:
            return read
        array, found = self._arrays[read.name], [constant(index) for index in read.indices]
        pairs = list(zip(found, array.shape, strict=True))
        if any(place is not None and not 0 <= place < extent for place, extent in pairs):
            return number(read.outside or 0.0)
        part = array[tuple(slice(None) if place is None else int(place) for place in found)]
        if not part.any() and not read.outside:
            return ZERO
        return read if read.axes else number(float(part))


def _chosen(axes: Sequence[str], found: Mapping[tuple[int, ...], Expression]) -> Expression:
    """Return the expression that is ``found`` at each place of some axes: what most places have
    where no comparison holds."""
    if not axes:
        return found[()]
    axis, *rest = axes
    extent = 1 + max(at[0] for at in found)
    each = [
        _chosen(rest, {at[1:]: body for at, body in found.items() if at[0] == place})
        for place in range(extent)
    ]
    usual, _ = Counter(reversed(each)).most_common(1)[0]
    made = usual
    for place in reversed(range(extent)):
        if each[place] != usual:
            condition = Comparison("==", AxisValue(axis), Number(float(place)))
            made = Select(condition, each[place], made)
    return made
