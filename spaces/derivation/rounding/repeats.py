"""Count how often the terms of a sum have the same factor, which then rounds alike in all of them.

Independent roundings add up to the root of all terms' squares. In n terms with one factor they are
equal, and add up to n times one: at most sqrt(n) times as much, by the Cauchy-Schwarz inequality.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import prod
from typing import TypeVar

from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Expression, Read

T = TypeVar("T")


def repeats(program: Program, stage: Stage, factor: Expression) -> float:
    """Count how many terms of the sum ``stage`` have the same ``factor``, on average over all
    terms.

    These are terms along axes that the factor does not depend on, and terms chosen by equal entries
    of a table. If n entries are drawn from m values, each has (n - 1) / m others like it. If they
    are drawn in order, or computed, all may be equal.
    """
    alike = prod(program.extent[axis] for axis in stage.over if axis not in factor.axes)
    tables = dict(sorted(gathered(program, factor, stage.over)))  # of each the most entries
    return alike * prod(_again(program, name, entries) for name, entries in tables.items())


def _again(program: Program, name: str, entries: int) -> float:
    table = program.operand.get(name)
    if table is None or table.drawn is None or table.drawn.sorted:
        return entries
    return 1 + (entries - 1) / table.drawn.below


def gathered(
    program: Program, expression: Expression, along: Collection[str]
) -> Iterator[tuple[str, int]]:
    """Yield the names of the arrays that choose what an ``expression`` reads ``along`` some of its
    axes, and how many entries each has along these."""
    waiting, seen = [(expression, frozenset(along))], set()
    while waiting:
        node, axes = waiting.pop()
        for read in node.value_reads:
            for entry in (inner for index in read.indices for inner in index.reads):
                if own := _along(entry, _shape(program, entry.name), axes):
                    yield entry.name, prod(own)
            if stage := program.stage.get(read.name):
                within = frozenset(_along(read, stage.axes, axes))
                if within and (stage.name, within) not in seen:
                    seen.add((stage.name, within))
                    waiting.append((stage.body, within))


def _shape(program: Program, name: str) -> tuple[int, ...]:
    operand = program.operand.get(name)
    return program.shape(program.stage[name].axes) if operand is None else operand.shape


def _along(read: Read, dimensions: Iterable[T], along: Collection[str]) -> list[T]:
    """Select the dimensions of an array that are read along some of these axes."""
    pairs = zip(dimensions, read.indices, strict=True)
    return [dimension for dimension, index in pairs if not index.axes.isdisjoint(along)]
