"""Plant mistakes in stages that cancel, to test whether inputs show them.

A softmax does not depend on the value that is subtracted from its scores, as long as nothing
overflows. For numbers about zero, the mean hardly changes a variance. So a kernel whose maximum or
mean is wrong may pass. Here each stage that is read along the axes which it reduces is replaced by
its identity, by zero and by one of its elements. The float32 result of that is compared with the
allowed bounds. Factors in exponentials, and counts, are off by :data:`OFF`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tilewright.measure.drawing.scores import is_exponential
from tilewright.spaces.derivation.rounding.allowance import allowed, computed
from tilewright.spaces.derivation.rounding.rows import Places, Rows
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Call, Expression, Number
from tilewright.spaces.numerics.allowance import agrees

OFF = 1.02
"""Times that a factor is larger than it should be."""


def mistakes(program: Program) -> Iterator[tuple[str, Program]]:
    """Yield each planted mistake: its description, and the wrong program."""
    for stage in program.stages:
        if is_read_along(program, stage):
            for name, body in _replacements(program, stage):
                yield f"{stage.name} is {name}", _with(program, replace(stage, body=body))
    if any(is_exponential(node) for stage in program.stages for node in stage.body.walk()):
        stages = tuple(replace(s, body=_off(s.body)) for s in program.stages)
        yield "exponents are too large", replace(program, stages=stages)


def undetected(
    program: Program,
    draws: Iterator[Mapping[str, np.ndarray]],
    rows: Rows | None = None,
    known: Mapping[str, Places] | None = None,
) -> dict[str, Program]:
    """Return the mistakes that none of the draws shows at these ``rows``."""
    hidden = dict(mistakes(program))
    for inputs in draws:
        if not hidden:
            break
        right = allowed(program, inputs, rows, known=known)
        for name, wrong in tuple(hidden.items()):
            found = computed(wrong, inputs, rows, known)
            if any(not agrees(found[o], *right[o]).all() for o in right):
                del hidden[name]
    return hidden


def is_read_along(program: Program, stage: Stage) -> bool:
    """Tell whether stages read it along the axes that it reduces, as they read a maximum or a
    mean.
    """
    return stage.reducer in ("sum", "max", "min") and any(
        read.name == stage.name and {*stage.over} & {*other.axes, *other.over}
        for other in program.stages
        for read in other.body.value_reads
    )


def _replacements(program: Program, stage: Stage) -> Iterator[tuple[str, Expression]]:
    """Yield the bodies of a map in its place."""
    first: dict[str, Expression] = {axis: AxisValue(axis) for axis in stage.axes}
    first |= dict.fromkeys(stage.over, Number(0.0))
    if isinstance(stage.body, Number):
        count = stage.body.value * np.prod(program.shape(stage.over))
        yield "too large", Number(float(count * OFF))
    else:
        yield "one element", stage.body.at(first)
    identity = REDUCERS[stage.reducer or ""].identity
    for value in dict.fromkeys((identity, 0.0)):
        yield f"{value:g}", Number(value)


def _with(program: Program, stage: Stage) -> Program:
    """Return the program with a map in the place of a reduction."""
    own = replace(stage, reducer=None, over=())
    return replace(
        program, stages=tuple(own if s.name == stage.name else s for s in program.stages)
    )


def _off(node: Expression) -> Expression:
    """Return the exponents that are so much too large."""
    inner = tuple(map(_off, node.children))
    if isinstance(node, Call) and is_exponential(node):
        return Call(node.function, (Binary("*", inner[0], Number(OFF)),))
    return node if inner == node.children else node.with_children(inner)
