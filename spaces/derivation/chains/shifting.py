"""Means of elements that are near one of them: what is subtracted first, so that nothing cancels.

A variance sums up squares of ``x - sum(x) / n``. Where the mean is large beside the spread, the
error of a mean in the type computed in is not small beside ``x - mean``. Subtracting one of the
elements, ``p``, from all first leaves numbers as small as the spread (Chan, Golub and LeVeque,
Algorithms for computing the sample variance, American Statistician 37, 1983):

    x - sum(x) / n = (x - p) - sum(x - p) / n        sum(x) = sum(x - p) + n p

An element that is far from all others would take the digits of all differences: ``p`` is the first
or the middle one, whichever is nearer to the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isclose, prod

import numpy as np

from tilewright.spaces.derivation.algebra import ONE
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

LARGEST = 1e30
"""The subtrahend is no larger, so that no other element overflows, and no infinite one is
subtracted from itself."""


def shifted(program: Program) -> Program:
    """Return the program with shifted sums in the place of those whose mean a sum subtracts from
    their terms; the same program if there are none."""
    shift = _Shift(program)
    bodies = {s.name: shift.body(s) for s in program.stages if s.reducer == "sum"}
    stages: list[Stage] = []
    for stage in program.stages:
        if stage.name in shift.used:
            about = shift.used[stage.name]
            near = shift.near(stage)
            total = Binary("*", Number(float(shift.count(stage))), near)
            stages.append(replace(stage, name=about, body=Binary("-", shift.term(stage), near)))
            whole = Binary("+", _own(stage, about), total)
            stages.append(replace(stage, reducer=None, over=(), body=whole))
        else:
            stages.append(replace(stage, body=bodies.get(stage.name, stage.body)))
    return replace(program, stages=tuple(stages)) if shift.used else program


@dataclass(frozen=True)
class _Shift:
    """Finds sums whose mean is subtracted from their own terms: ``used`` has the names of those,
    and of the sums of what is shifted."""

    program: Program

    @cached_property
    def used(self) -> dict[str, str]:
        return {}

    @cached_property
    def _sums(self) -> Mapping[str, Stage]:
        """The sums whose terms are of operands alone."""
        return {
            s.name: s
            for s in self.program.stages
            if s.reducer == "sum"
            and self.term(s).axes
            and not self.program.bounding(s)
            and all(read.name in self.program.operand for read in self.term(s).reads)
        }

    def term(self, stage: Stage) -> Expression:
        """Write the expression that a stage reduces in terms of operands and reductions."""
        return inlined(self.program, stage.body, lambda _: True)

    def count(self, stage: Stage) -> int:
        """Say how many terms a sum has."""
        return prod(self.program.shape(stage.over))

    def near(self, stage: Stage) -> Expression:
        """Write the term of a sum that is subtracted from all others."""
        last = self.count(stage) - 1
        first, middle, end = (self._at(stage, rank) for rank in (0, (last + 1) // 2, last))
        one, other = (Call("abs", (Binary("-", term, end),)) for term in (first, middle))
        found, limit = Select(Comparison("<", one, other), first, middle), Number(LARGEST)
        return Call("min", (Call("max", (found, Negation(limit))), limit))

    def _at(self, stage: Stage, rank: int) -> Expression:
        """Return the term of a sum that has so many before it."""
        term = self.term(stage)
        kept = {axis: AxisValue(axis) for axis in term.axes - set(stage.over)}
        places = np.unravel_index(rank, self.program.shape(stage.over))
        own = {a: Number(float(p)) for a, p in zip(stage.over, places, strict=True)}
        return term.at({**kept, **own})

    def body(self, stage: Stage) -> Expression:
        """Write the terms of a sum with shifted terms and means."""
        found = self.term(stage)
        new = self._replaced(found, stage)
        return stage.body if new == found else new

    def _replaced(self, node: Expression, within: Stage) -> Expression:
        match node:
            case Binary("-", term, Binary("/", Read(name), count)) if name in self._sums:
                total = self._sums[name]
                own = node.right.left == _own(total, name)  # type: ignore[attr-defined]
                if own and term == self.term(total) and self._counts(count, total):
                    return self._about(total, term, count)
        return node.with_children(tuple(self._replaced(c, within) for c in node.children))

    def _about(self, total: Stage, term: Expression, count: Expression) -> Expression:
        name = self.used.setdefault(total.name, self._unused(f"{total.name}_about"))
        mean = Binary("/", _own(total, name), count)
        return Binary("-", Binary("-", term, self.near(total)), mean)

    def _unused(self, name: str) -> str:
        while name in self.program.stage or name in self.program.operand:
            name += "_"
        return name

    def _counts(self, node: Expression, total: Stage) -> bool:
        """Tell whether an expression is the number of a sum's terms."""
        if isinstance(node, Number):
            return isclose(node.value, self.count(total))
        counting = self.program.stage.get(node.name) if isinstance(node, Read) else None
        if counting is None or self.program.bounding(counting):
            return False
        return (
            counting.reducer == "sum"
            and counting.body == ONE
            and self.count(counting) == self.count(total)
        )


def _own(stage: Stage, name: str) -> Read:
    """Return the read of an array of the stage's axes at these."""
    return Read(name, tuple(map(AxisValue, stage.axes)))
