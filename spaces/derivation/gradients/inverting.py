"""Operands that a gradient does not read, but solves for in a saved stage that is computed of them.

``y = (x - mean) * rstd * weight + bias`` gives ``x - mean = (y - bias) / (weight * rstd)``, so that
a norm's gradient needs no ``x`` where ``y`` is kept (Andoorveedu et al., "Tempo: Accelerating
Transformer-Based Model Training through Memory Footprint Reduction", NeurIPS 2022). Where a factor
such as ``weight`` is 0, nothing of ``x`` is left: the gradient is then no number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tilewright.spaces.derivation.algebra import minus, negated, over, plus, times
from tilewright.spaces.derivation.gradients.saving import replaced, standing_in
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Negation, Read

Inverse = Mapping[Expression, Expression]
"""Expressions of an operand, each with what it is by the stage that is known."""


def inverse_of(program: Program, stage: Stage, name: str) -> Inverse | str:
    """Return all that a map computes of an operand before its own value, solved for in that value;
    or why it cannot be solved for."""
    reads = [read for read in stage.body.value_reads if read.name == name]
    if not reads:
        return f"{stage.name} lacks it"
    if stage.reducer is not None:
        return f"{stage.name} reduces it"
    if len(reads) > 1:
        return f"{stage.name} reads it {len(reads)} times"
    if not _covers(program, stage, reads[0]):
        return f"{stage.name} has not one element for each of {name}"
    node, value = stage.body, _read(stage)
    found = {node: value}
    while node != reads[0]:
        step = _step(node, value, reads[0])
        if step is None:
            return f"{stage.name} computes {node}; allowed: + - * /"
        node, value = step
        found[node] = value
    return found


def _read(stage: Stage) -> Expression:
    return Read(stage.name, tuple(map(AxisValue, stage.axes)))


def _covers(program: Program, stage: Stage, read: Read) -> bool:
    """Tell whether a map reads each element of an operand at one of its own."""
    axes = [index.name for index in read.indices if isinstance(index, AxisValue)]
    plain = len(axes) == len(read.indices) and sorted(axes) == sorted(stage.axes)
    return plain and program.shape(tuple(axes)) == program.operand[read.name].shape


def _step(node: Expression, value: Expression, read: Read) -> tuple[Expression, Expression] | None:
    """Return the operand of an operation that has the read below it, and what it is where the
    result is a value; None of what is not inverted."""
    match node:
        case Negation(inner):
            return inner, negated(value)
        case Binary(operator, left, right):
            inner, other = (left, right) if read in left.values() else (right, left)
            return inner, _solved(operator, value, other, inner is left)
    return None


def _solved(operator: str, value: Expression, other: Expression, is_left: bool) -> Expression:
    match operator:
        case "+":
            return minus(value, other)
        case "-":
            return plus(value, other) if is_left else minus(other, value)
        case "*":
            return _divided(value, other)
    return times(value, other) if is_left else over(other, value)


def _divided(value: Expression, by: Expression) -> Expression:
    """Return a quotient, by one division where the value is one already."""
    match value:
        case Binary("/", above, below):
            return over(above, times(below, by))
    return over(value, by)


def with_solved(
    program: Program,
    stages: Iterable[Stage],
    saved: Collection[str],
    solved: Sequence[str],
) -> list[Stage]:
    """Return stages that read what is ``saved`` in the place of operands that are ``solved`` for;
    :class:`InputError` for one that no saved stage gives."""
    check_operands(program, solved)
    found = list(stages)
    for name in solved:
        inverse = _inverse(program, saved, name)
        found = [replace(stage, body=_without(stage.body, name, inverse)) for stage in found]
    return found


def check_operands(program: Program, solved: Iterable[str]) -> None:
    """Refuse names of what is no operand."""
    for name in solved:
        if name not in program.operand:
            known = ", ".join(program.operand)
            problem = f"solved {shown(name)} is no operand of the program"
            raise InputError(f"{problem}; operands: {known}")


def _inverse(program: Program, saved: Collection[str], name: str) -> Inverse:
    reasons = []
    by = standing_in(program, saved)
    for stage in program.stages:
        if stage.name in saved:
            body = replaced(program, stage.body, by)
            found = inverse_of(program, replace(stage, body=body), name)
            if not isinstance(found, str):
                return found
            reasons.append(found)
    why = "; ".join(reasons) or "nothing is saved"
    raise InputError(f"{name} cannot be solved for: {why}")


def _without(node: Expression, name: str, inverse: Inverse) -> Expression:
    """Return an expression with all that is computed of an operand read from what is saved."""
    read = next((read for read in node.value_reads if read.name == name), None)
    if read is None:
        return node
    at = _places(read, inverse)
    for known, value in inverse.items():
        if at is not None and node == known.at(at):
            return value.at(at)
    children = tuple(_without(child, name, inverse) for child in node.children)
    return node if children == node.children else node.with_children(children)


def _places(read: Read, inverse: Inverse) -> Mapping[str, Expression] | None:
    """Return the indices of a read by the axes of the map that is inverted."""
    own = [*inverse][-1]
    assert isinstance(own, Read)
    if read.outside is not None:
        return None
    return {str(axis): index for axis, index in zip(own.indices, read.indices, strict=True)}


def check_solved(stages: Iterable[Stage], solved: Collection[str]) -> None:
    """Refuse operands that are solved for and read nevertheless."""
    for stage in stages:
        for read in stage.body.reads:
            if read.name in solved:
                problem = f"{read.name} cannot be solved for: {stage.name} reads it"
                raise InputError(f"{problem}; allowed: saved stages in the place of that one")
