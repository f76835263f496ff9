"""Expressions at other points of their axes, with indices in their normal form."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from tilewright.spaces.derivation.algebra import index_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import Affine, affine
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Number, Read


def moved(node: Expression, to: Mapping[str, Expression], stages: Container[str]) -> Expression:
    """Return an expression with other expressions in the place of some axes. Reads of ``stages``
    stay what they are: these move with what reads them."""
    if isinstance(node, AxisValue):
        return to.get(node.name, node)
    if isinstance(node, Read) and node.name in stages:
        return node
    children = tuple(moved(child, to, stages) for child in node.children)
    if children == node.children:
        return node
    if isinstance(node, Read):
        children = tuple(index_of(affine(child)) for child in children)
    return node.with_children(children)


def forward(program: Program) -> Program:
    """Return the program with those axes of sums reversed along which entries that may be beyond
    the borders are read backwards only: kernels read these with forward steps, and no sum depends
    on the order of its terms."""
    if program.conditions:
        return program
    return replace(program, stages=tuple(_forward(program, stage) for stage in program.stages))


def _forward(program: Program, stage: Stage) -> Stage:
    backward = [axis for axis in stage.over if _runs_backward(stage, axis)]
    if stage.reducer != "sum" or not backward:
        return stage
    to = {
        axis: Binary("-", Number(float(program.extent[axis] - 1)), AxisValue(axis))
        for axis in backward
    }
    return replace(stage, body=moved(stage.body, to, ()))


def _runs_backward(stage: Stage, axis: str) -> bool:
    """Tell whether entries beyond borders are read along an axis, and by no forward step."""
    bounded = [read for read in stage.body.value_reads if read.outside is not None]
    steps = [_step(index, axis) for read in bounded for index in read.indices]
    return min(steps, default=0) < 0 and max(steps) <= 0


def _step(index: Expression, axis: str) -> int:
    try:
        form: Affine = affine(index)
    except InputError:
        return 0
    return dict(form.terms).get(AxisValue(axis), 0)
