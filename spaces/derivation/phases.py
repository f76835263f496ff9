"""Sums of which most terms are zero by a stride, phase by phase.

A transposed convolution with a stride of ``s`` adds up

    sum[r](select((p + 1 - r) % s == 0, x[(p + 1 - r) // s], 0) * w[r])

For elements ``p`` of one residue, the terms of one residue of ``r`` are there, and what is read is
a multiple of axes: the program of these elements alone is an ordinary sum of fewer products. There
are as many such programs as residues, of all strided axes together, and each writes every ``s``-th
element of the output. What is computed of the sums, element by element, is theirs, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

from tilewright.spaces.derivation.algebra import ZERO
from tilewright.spaces.derivation.moving import forward, moved
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import affine
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Number,
    Select,
)

MOST = 32
"""Phases that a program may have."""


@dataclass(frozen=True)
class Phase:
    """The program of some elements of the outputs, which :attr:`program` has as arrays of their
    own with steps; ``starts`` are the elements from the start of each output to its first one."""

    program: Program
    starts: tuple[int, ...]


@dataclass(frozen=True)
class _Stride:
    """The ``condition`` that ``(of_axis * axis + of_tap * tap + constant) % step == 0``; ``tap`` is
    None where one element of a sum is asked for only."""

    condition: Expression
    axis: str
    tap: str | None
    of_axis: int
    of_tap: int
    constant: int
    step: int

    def terms(self, residue: int, extent: int) -> range:
        """Return the taps of ``extent`` that elements of a residue have."""
        first = self.of_axis * residue + self.constant
        apart = self.step // gcd(self.of_tap, self.step)
        found = (r for r in range(extent) if (first + self.of_tap * r) % self.step == 0)
        return range(next(found, extent), extent, apart)


def phases(program: Program) -> tuple[Phase, ...]:
    """Return the programs that together compute ``program``; none if it is no such sum, or has too
    many phases."""
    strides = _strides(program)
    if not strides or prod(stride.step for stride in strides) > MOST:
        return ()
    extents = (range(min(s.step, program.extent[s.axis])) for s in strides)
    return tuple(_phase(program, strides, residues) for residues in product(*extents))


def _strides(program: Program) -> tuple[_Stride, ...]:
    """Return the strides of a program whose only reduction is such a sum, along axes that all of
    its other stages keep."""
    sums = [stage for stage in program.stages if stage.reducer]
    if len(sums) != 1 or sums[0].reducer != "sum" or program.conditions:
        return ()
    found = tuple(_strides_of(program, sums[0]))
    axes = [stride.axis for stride in found]
    taps = [stride.tap for stride in found if stride.tap]
    if len(set(axes)) < len(axes) or len(set(taps)) < len(taps):
        return ()
    kept = all(set(axes) <= set(stage.axes) for stage in program.stages)
    return found if kept and all(_stays(program, stage) for stage in program.stages) else ()


def _stays(program: Program, stage: Stage) -> bool:
    """Tell whether a stage reads others at its own point alone."""
    read = [r for r in stage.body.reads if r.name in program.stage]
    return all(r.indices == tuple(map(AxisValue, program.stage[r.name].axes)) for r in read)


def _strides_of(program: Program, stage: Stage) -> Iterator[_Stride]:
    for condition in dict.fromkeys(_conditions(stage.body)):
        found = _stride(stage, condition)
        if found is not None:
            yield found


def _conditions(body: Expression) -> Iterator[Comparison]:
    """Yield the conditions without which a product is zero."""
    match body:
        case Binary("*", left, right):
            yield from _conditions(left)
            yield from _conditions(right)
        case Select(Comparison() as condition, then, Number(0.0)):
            yield condition
            yield from _conditions(then)


def _stride(stage: Stage, condition: Comparison) -> _Stride | None:
    match condition:
        case Comparison("==", Binary("%", index, Number(step)), Number(0.0)):
            pass
        case _:
            return None
    try:
        form = affine(index)
    except InputError:
        return None
    by_axis = {atom.name: c for atom, c in form.terms if isinstance(atom, AxisValue)}
    kept = [axis for axis in by_axis if axis in stage.axes]
    taps = [axis for axis in by_axis if axis in stage.over]
    if len(by_axis) != len(form.terms) or len(kept) != 1 or len(taps) > 1:
        return None
    tap = taps[0] if taps else None
    of_tap = by_axis[tap] if tap else 0
    return _Stride(condition, kept[0], tap, by_axis[kept[0]], of_tap, form.constant, int(step))


def _phase(program: Program, strides: Sequence[_Stride], residues: Sequence[int]) -> Phase:
    """Return the program of the elements whose axes have these residues."""
    extents, to, empty = dict(program.extent), dict[str, Expression](), False
    for stride, residue in zip(strides, residues, strict=True):
        extents[stride.axis] = len(range(residue, program.extent[stride.axis], stride.step))
        to[stride.axis] = _at(stride.axis, stride.step, residue)
        terms = stride.terms(residue, program.extent[stride.tap] if stride.tap else 1)
        empty = empty or not terms
        if stride.tap and terms:
            extents[stride.tap] = len(terms)
            to[stride.tap] = _at(stride.tap, terms.step, terms.start)
    held = {stride.condition for stride in strides}
    stages = tuple(_stage(program, stage, held, to, empty) for stage in program.stages)
    read = {read.name for stage in stages for read in stage.body.reads}
    used = {axis for stage in stages for axis in (*stage.axes, *stage.over)}
    steps = {stride.axis: stride.step for stride in strides}
    made = Program(
        extents=tuple((axis, extents[axis]) for axis, _ in program.extents if axis in used),
        operands=tuple(operand for operand in program.operands if operand.name in read),
        stages=stages,
        conditions=(),
        outputs=tuple(_output(program, output, extents, steps) for output in program.outputs),
    )
    at = dict(zip((stride.axis for stride in strides), residues, strict=True))
    return Phase(forward(made), tuple(_start(program, output, at) for output in program.outputs))


def _at(axis: str, step: int, start: int) -> Expression:
    return Binary("+", Binary("*", Number(float(step)), AxisValue(axis)), Number(float(start)))


def _stage(
    program: Program,
    stage: Stage,
    held: set[Expression],
    to: Mapping[str, Expression],
    empty: bool,
) -> Stage:
    """Return a stage at the elements of a phase; a sum without terms is zero."""
    if stage.reducer and empty:
        return Stage(stage.name, stage.axes, None, (), ZERO)
    return replace(stage, body=moved(_without(stage.body, held), to, program.stage))


def _without(node: Expression, held: set[Expression]) -> Expression:
    """Return an expression where some conditions hold."""
    if isinstance(node, Select) and node.condition in held:
        return _without(node.then, held)
    children = tuple(_without(child, held) for child in node.children)
    return node if children == node.children else node.with_children(children)


def _output(
    program: Program, output: Output, extents: Mapping[str, int], steps: Mapping[str, int]
) -> Output:
    axes = program.stage[output.name].axes
    return replace(
        output,
        shape=tuple(extents[axis] for axis in axes),
        leading=None,
        steps=tuple(s * steps.get(a, 1) for a, s in zip(axes, output.strides, strict=True)),
    )


def _start(program: Program, output: Output, at: Mapping[str, int]) -> int:
    axes = program.stage[output.name].axes
    return sum(at.get(axis, 0) * s for axis, s in zip(axes, output.strides, strict=True))
