"""Equal programs in one spelling of their conditions on axes, so that they have one digest.

A sum, or a product, of what a condition selects, and of the identity elsewhere, is one that the
condition bounds. Of a selection by whole numbers and the one by the opposite condition, the values
exchanged, that which ends with a number is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.spaces.derivation.rewriting import REPLACED
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import (
    MIRRORED,
    OPPOSITE,
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Negation,
    Number,
    Select,
)

GREATER = (">", ">=")
"""The comparisons that are written with their sides exchanged."""
FIRST = ("<", "==")
"""The comparisons of which a selection is written, if no value decides it."""


def in_one_spelling(program: Program) -> Program:
    """Return the same program with conditions in the place of selections that they make, and
    selections written alike."""
    parts = {stage.name: list(_parts(stage)) for stage in program.stages}
    conditions = dict.fromkeys(c for each in parts.values() for c in each if c is not None)
    shared = [c for c in conditions if _is_shared(c, program, parts)]
    stages = tuple(_without(stage, shared) for stage in program.stages)
    stages = tuple(replace(stage, body=_alike(stage.body)) for stage in stages)
    whole = dict.fromkeys((*program.conditions, *shared))
    return replace(program, stages=stages, conditions=tuple(whole))


def _parts(stage: Stage) -> Iterator[Comparison | None]:
    """Yield the condition of each selection around the body, None of one that hides nothing of
    the reduction."""
    body = stage.body
    while isinstance(body, Select):
        found = _hidden(stage, body)
        if found is None:
            yield None
            return
        condition, body = found
        yield condition


def _hidden(stage: Stage, node: Select) -> tuple[Comparison, Expression] | None:
    """Return the condition under which a selection counts in a reduction, and its value then."""
    if stage.reducer not in REPLACED or not _is_whole(node.condition):
        return None
    assert isinstance(node.condition, Comparison)
    identity = Number(REDUCERS[stage.reducer].identity)
    if node.condition.axes.isdisjoint(stage.over):
        return None
    if node.otherwise == identity:
        return _turned(node.condition), node.then
    if node.then == identity:
        return _turned(_opposite(node.condition)), node.otherwise
    return None


def _is_shared(
    condition: Comparison, program: Program, parts: dict[str, list[Comparison | None]]
) -> bool:
    """Tell whether every reduction over an axis that a condition names has it: as a condition of
    the program it would bound them all."""
    over = [s for s in program.stages if not condition.axes.isdisjoint(s.over)]
    return all(condition in parts[stage.name] for stage in over)


def _without(stage: Stage, conditions: list[Comparison]) -> Stage:
    """Return a stage without the selections that conditions of the program make."""

    def value(node: Expression) -> Expression:
        found = _hidden(stage, node) if isinstance(node, Select) else None
        if found is None:
            return node
        condition, then = found
        if condition in conditions:
            return value(then)
        assert isinstance(node, Select)
        inner = value(then)
        return replace(node, then=inner) if then is node.then else replace(node, otherwise=inner)

    return replace(stage, body=value(stage.body))


def _alike(node: Expression) -> Expression:
    """Return an expression whose selections by whole numbers are written alike."""
    children = tuple(_alike(child) for child in node.children)
    node = node if children == node.children else node.with_children(children)
    if not isinstance(node, Select) or not _is_whole(node.condition):
        return node
    assert isinstance(node.condition, Comparison)
    condition = _turned(node.condition)
    ends = [isinstance(each, Number) for each in (node.then, node.otherwise)]
    stays = ends[1] if ends[0] != ends[1] else condition.operator in FIRST
    if stays:
        return Select(condition, node.then, node.otherwise)
    return Select(_turned(_opposite(condition)), node.otherwise, node.then)


def _is_whole(node: Expression) -> bool:
    """Tell whether a condition compares numbers that axes alone make, none of them a quotient,
    which may be no number."""
    return isinstance(node, Comparison) and all(
        isinstance(each, AxisValue | Binary | Negation | Number)
        and not (isinstance(each, Binary) and each.operator == "/")
        for side in node.children
        for each in side.walk()
    )


def _opposite(condition: Comparison) -> Comparison:
    return replace(condition, operator=OPPOSITE[condition.operator])


def _turned(condition: Comparison) -> Comparison:
    """Return a comparison that is none of greater numbers."""
    if condition.operator not in GREATER:
        return condition
    return Comparison(MIRRORED[condition.operator], condition.right, condition.left)
