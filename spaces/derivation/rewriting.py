"""Equal programs in forms that more kernels compute.

A sum, or a product, that conditions bound is one of all elements, of which hidden ones are replaced
by 0, or 1. Entries that are only there where the conditions hold are read by ``inside``. The number
of elements of a reduction that nothing bounds is a number. A sum whose entries beyond borders are
read backwards runs the other way (:mod:`spaces.derivation.moving`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tilewright.spaces.derivation.moving import forward
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.reading.inference import entry_ranges
from tilewright.spaces.language.tree import Expression, Number, Read, Select

REPLACED = ("sum", "prod")
"""Reducers whose identity is a number of the language."""


def rewritten(program: Program) -> Program | None:
    """Return the program without conditions of sums and products, without counts, and with sums
    that run forward; None if that is the same one, or computed step by step."""
    if cycles(program):
        return None
    made = forward(_without_counts(_without_conditions(program)))
    return None if made == program else made


def _without_conditions(program: Program) -> Program:
    stages = tuple(_unbounded(program, stage) for stage in program.stages)
    kept = replace(program, stages=stages)
    if any(stage.reducer not in REPLACED and program.bounding(stage) for stage in stages):
        return program  # a condition bounds every reduction over its axes
    return replace(kept, conditions=())


def _unbounded(program: Program, stage: Stage) -> Stage:
    """Return the stage whose body is the identity where a condition hides it."""
    conditions = program.bounding(stage)
    if not conditions or stage.reducer not in REPLACED:
        return stage
    everywhere = Bounds.under((), program.extent, entry_ranges(program))
    body = _guarded(program, stage.body, everywhere)
    for condition in reversed(conditions):
        body = Select(condition, body, Number(REDUCERS[stage.reducer].identity))
    return replace(stage, body=body)


def _guarded(program: Program, node: Expression, bounds: Bounds) -> Expression:
    """Return an expression whose reads are inside their arrays everywhere."""
    children = tuple(_guarded(program, child, bounds) for child in node.children)
    node = node if children == node.children else node.with_children(children)
    if not isinstance(node, Read) or node.outside is not None:
        return node
    operand = program.operand.get(node.name)
    shape = operand.shape if operand else program.shape(program.stage[node.name].axes)
    ranges = zip(map(bounds.of, node.indices), shape, strict=True)
    inside = all(low >= 0 and high < extent for (low, high), extent in ranges)
    return node if inside else replace(node, outside=0.0)


def _without_counts(program: Program) -> Program:
    """Return the program with numbers for stages that count what no condition bounds."""
    outputs = {output.name for output in program.outputs}
    counts = {
        stage.name: Number(stage.body.value * prod(program.shape(stage.over)))
        for stage in program.stages
        if stage.reducer == "sum"
        and isinstance(stage.body, Number)
        and not program.bounding(stage)
        and stage.name not in outputs
    }
    stages = tuple(
        replace(stage, body=_numbered(stage.body, counts))
        for stage in program.stages
        if stage.name not in counts
    )
    return replace(program, stages=stages)


def _numbered(node: Expression, counts: Mapping[str, Number]) -> Expression:
    if isinstance(node, Read) and node.name in counts:
        return counts[node.name]
    children = tuple(_numbered(child, counts) for child in node.children)
    return node if children == node.children else node.with_children(children)
