"""Operands that are added to scores, or whose greatest or least value is sought, as masks are."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.measure.drawing.slices import Slices
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Binary, Call, Expression, Number, Read

SOUGHT = {"max": -1, "argmax": -1, "min": 1, "argmin": 1}
"""The sign of the infinity that is no element's, by reducer."""


def masked_operands(program: Program) -> dict[str, tuple[Slices, int]]:
    """Map each operand that masks to the sign of the infinity that leaves an element out; it is
    given in slices of rows that are reduced one by one.
    """
    found: dict[str, tuple[Slices, int]] = {}
    for stage in program.stages:
        for read, sign in _masks(program, stage):
            operand = program.operand.get(read.name)
            if operand and not operand.element.is_integer:
                along = (d for d, i in enumerate(read.indices) if i.axes.isdisjoint(stage.over))
                found.setdefault(read.name, (Slices(operand, tuple(along)), sign))
    return found


def _masks(program: Program, stage: Stage) -> Iterator[tuple[Read, int]]:
    if stage.reducer in SOUGHT:
        body = inlined(program, stage.body, lambda map_: True)
        for read in _added(body):
            yield read, SOUGHT[stage.reducer]


def _added(node: Expression) -> Iterator[Read]:
    """Yield the reads that are terms of an expression, or of a positive multiple of it."""
    match node:
        case Read():
            yield node
        case Binary("+", left, right):
            yield from _added(left)
            yield from _added(right)
        case Binary("-" | "/", left, _):
            yield from _added(left)
        case Binary("*", Number(), inner) | Binary("*", inner, Number()):
            yield from _added(inner)
        case Call("float32" | "float16" | "bfloat16", (inner,)):
            yield from _added(inner)
