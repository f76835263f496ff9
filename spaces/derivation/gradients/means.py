"""Means: numbers in the place of counts, and the identity that distances from a mean add up to 0.

Variances subtract a mean from their elements. The derivative in that mean is a multiple of the sum
of the distances from it, so it is 0 and nothing has to be computed (Chan, Golub and LeVeque,
Algorithms for computing the sample variance, 1983).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import isclose, prod

from tilewright.spaces.derivation.algebra import constant, factors
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Number, Read


def without_counts(program: Program) -> Program:
    """Return the program with numbers for the counts that no condition bounds, but for outputs."""
    outputs = {output.name for output in program.outputs}
    counts = {s.name: count_of(program, s) for s in program.stages if s.name not in outputs}
    known = {name: Number(float(count)) for name, count in counts.items() if count is not None}

    def visit(node: Expression) -> Expression:
        if isinstance(node, Read) and node.name in known:
            return known[node.name]
        children = tuple(map(visit, node.children))
        return node if children == node.children else node.with_children(children)

    stages = (s for s in program.stages if s.name not in known)
    return replace(program, stages=tuple(replace(s, body=visit(s.body)) for s in stages))


def count_of(program: Program, stage: Stage) -> int | None:
    """Return the number that a stage counts up to; None of another stage."""
    counts = stage.reducer == "sum" and stage.body == Number(1.0) and not program.bounding(stage)
    return prod(program.shape(stage.over)) if counts else None


def is_mean(program: Program, mean: Expression, element: Expression, over: Collection[str]) -> bool:
    """Tell whether an expression is the mean of elements over some axes."""
    value, total = 1.0, None
    for factor in factors(inlined(program, mean, lambda _: True)):
        match factor, constant(factor):
            case Read(name, indices), _ if name in program.stage and total is None:
                total = program.stage[name]
                plain = indices == tuple(map(AxisValue, total.axes))
            case _, float(number):
                value *= number
            case _:
                value *= _reciprocal(factor)
    if total is None or total.reducer != "sum" or program.bounding(total) or not plain:
        return False
    count = prod(program.shape(total.over))
    same = {*total.over} == {*over} and total.body == element
    return same and isclose(value * count, 1.0, rel_tol=1e-12)


def _reciprocal(factor: Expression) -> float:
    """Return the value of one divided by a number; 0 of anything else."""
    values = [constant(child) for child in factor.children]
    if len(values) == 2 and values[0] is not None and values[1]:
        return values[0] / values[1]
    return 0.0
