"""How often the terms of a sum have the same factor, which all of them then round alike.

Roundings that have nothing to do with each other add up to the root of all terms' squares. Of n
terms with one factor they are the same, and add up to n of them: by the inequality of Cauchy and
Schwarz to sqrt(n) times as much at most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import prod
from typing import TypeVar

from spaces.language.program import Operand, Program, Stage
from spaces.language.tree import Expression, Read

T = TypeVar("T")


def repeats(program: Program, stage: Stage, factor: Expression) -> float:
    """How many terms of the sum ``stage`` have the same ``factor``, on average over all terms:
    those along axes that it does not vary along, and those that an entry of a table chooses which
    comes again. Of n entries that are drawn of m, each has (n - 1) / m others like it."""
    alike = prod(program.extent[axis] for axis in stage.over if axis not in factor.axes)
    tables = gathered(program, factor, frozenset(stage.over))
    return alike * max((_again(table, entries) for table, entries in tables), default=1.0)


def _again(table: Operand, entries: int) -> float:
    assert table.drawn is not None
    return entries if table.drawn.sorted else 1 + (entries - 1) / table.drawn.below


def gathered(
    program: Program, expression: Expression, along: Collection[str]
) -> Iterator[tuple[Operand, int]]:
    """The tables that choose what an ``expression`` reads ``along`` some of its axes, and how many
    entries each has along these."""
    for read in expression.value_reads:
        for entry in (inner for index in read.indices for inner in index.reads):
            table = program.operand[entry.name]
            if own := _along(entry, table.shape, along):
                yield table, prod(own)
        if stage := program.stage.get(read.name):
            yield from gathered(program, stage.body, set(_along(read, stage.axes, along)))


def _along(read: Read, dimensions: Iterable[T], along: Collection[str]) -> list[T]:
    """Those of an array's dimensions that are read along some of these axes."""
    pairs = zip(dimensions, read.indices, strict=True)
    return [dimension for dimension, index in pairs if not index.axes.isdisjoint(along)]
