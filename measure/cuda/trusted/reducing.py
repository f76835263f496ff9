"""Reductions in a judging kernel: the state of each thread, and how states of threads are merged.
The formulas are those of :mod:`spaces.derivation.rounding.reductions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import mul
from typing import Any

from tilewright.measure.cuda.trusted.meaning import CodeMeaning
from tilewright.measure.cuda.trusted.statements import CONDITION, DOUBLE, WHOLE, Variable, text
from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.derivation.rounding.reductions import (
    Terms,
    ends_of_best,
    is_exact,
    place_of_best,
    product_of_terms,
    sum_of_terms,
    terms_of_sum,
)
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.numerics.interval import Interval

_OPERATORS = ("+", "*", "||")


@dataclass(frozen=True)
class State:
    """A variable that takes in one ``term`` after the other, from ``start`` on. ``join`` is C text
    of two of them, which it joins: ``+``, or a function's name."""

    kind: str
    start: str
    join: str
    term: str

    def joined(self, a: str, b: str) -> str:
        """C text of two states as one."""
        return f"{a} {self.join} {b}" if self.join in _OPERATORS else f"{self.join}({a}, {b})"


Finish = Callable[[CodeMeaning, Sequence[Variable]], Approximate]
"""Computes a reduction from its states, once they have taken in everything."""


def reduction(program: Program, stage: Stage, meaning: CodeMeaning) -> tuple[list[State], Finish]:
    """Return the states of a stage's reduction, their terms at one point, and what becomes of
    them."""
    if stage.reducer == "sum":
        return _sum(program, stage, meaning)
    body = stage.body.fold(meaning)
    if stage.reducer in ("argmax", "argmin"):
        return _place(program, stage, meaning, body)
    if body.interval is None:
        return _whole(stage, body)
    if stage.reducer == "prod":
        return _product(program, stage, meaning, body)
    return _extreme(stage, body)


def _sum(program: Program, stage: Stage, meaning: CodeMeaning) -> tuple[list[State], Finish]:
    terms = terms_of_sum(program, stage, meaning)

    def added(parts: Sequence[Any]) -> State:
        kind = DOUBLE if terms.sizes else WHOLE
        return State(kind, "0", "+", text(reduce(mul, parts)))

    every = (terms.values, terms.sizes, *terms.off, terms.squares)
    states = [added(parts) for parts in every if parts]
    if terms.sizes:
        size = text(reduce(mul, terms.sizes))
        states.append(State(DOUBLE, "0", "+", f"({size} < ex_infinity() ? {size} : 0.0)"))

    def finish(meaning: CodeMeaning, found: Sequence[Variable]) -> Approximate:
        value, *others = found
        if not others:
            return Approximate(value)
        finite = others.pop()
        off, squares = others[1 : 1 + len(terms.off)], others[1 + len(terms.off) :]
        sums = Terms([value], [others[0]], off, squares, terms.alike, terms.apart, finite)
        return sum_of_terms(program, stage, meaning, sums)

    return states, finish


def _place(
    program: Program, stage: Stage, meaning: CodeMeaning, body: Approximate
) -> tuple[list[State], Finish]:
    """Return the number of a point among all that are reduced; 0 where there are none."""
    at, reducer = "0", stage.reducer or ""
    for axis in stage.over:
        at = f"({at} * {program.extent[axis]} + {meaning.axes[axis]})"
    term = f"Place{{(double){text(body.value)}, {at}}}"
    states = [State("Place", "Place{0.0, -1}", f"ex_{reducer}", term)]
    settled = is_exact(body)
    if not settled:
        states += _contest(at, *ends_of_best(reducer, body))

    def finish(meaning: CodeMeaning, found: Sequence[Variable]) -> Approximate:
        at = f"{found[0]}.at"
        place = meaning.code.variable(f"{at} < 0 ? 0 : {at}", WHOLE)
        if settled:
            return Approximate(place)
        best, three, loose, free = found[1:]
        contested = f"{free} || ({three}.second >= {best} && {loose} >= {best})"
        more, code = f"{free} || {three}.third >= {best}", meaning.code
        ends = (
            f"{more} ? 0 : ex_whole_min({three}.at, {three}.next)",
            f"{more} ? {prod(program.shape(stage.over)) - 1} "
            f": ex_whole_max({three}.at, {three}.next)",
        )
        between = (code.variable(end, WHOLE) for end in ends)
        return place_of_best(meaning, place, code.variable(contested, CONDITION), *between)

    return states, finish


def _contest(at: str, low: Variable, high: Variable, free: Variable) -> list[State]:
    """Make the states that tell whether a place other than ``at`` may hold the greatest element,
    and is not surely equal to it: the greatest lower bound, the three greatest upper bounds, and
    the greatest inexact value.
    """
    none = "-ex_infinity()"
    loose = f"({low} < {high} ? {high} : {none})"
    start = f"Three{{{none}, {none}, {none}, 0, 0}}"
    return [
        State(DOUBLE, none, "ex_max", text(low)),
        State("Three", start, "ex_three", f"Three{{{high}, {none}, {none}, {at}, 0}}"),
        State(DOUBLE, none, "ex_max", loose),
        State(CONDITION, "false", "||", text(free)),
    ]


def _whole(stage: Stage, body: Approximate) -> tuple[list[State], Finish]:
    """Reduce integers."""
    starts = {"prod": "1", "max": "-9223372036854775807 - 1", "min": "9223372036854775807"}
    join = {"prod": "*"}.get(stage.reducer or "", f"ex_whole_{stage.reducer}")
    reducer = stage.reducer or ""
    states = [State(WHOLE, starts[reducer], join, text(body.value))]
    return states, lambda meaning, found: Approximate(found[0])


def _product(
    program: Program, stage: Stage, meaning: CodeMeaning, body: Approximate
) -> tuple[list[State], Finish]:
    size = meaning.numbers.call("abs", [body.value]) + meaning.radius(body)
    states = [State(DOUBLE, "1", "*", text(part)) for part in (body.value, size)]
    terms = prod(program.shape(stage.over))

    def finish(meaning: CodeMeaning, found: Sequence[Variable]) -> Approximate:
        value, most = found
        return product_of_terms(meaning, value, most, terms)

    return states, finish


def _extreme(stage: Stage, body: Approximate) -> tuple[list[State], Finish]:
    assert body.interval is not None
    b, start = body.interval, "-ex_infinity()" if stage.reducer == "max" else "ex_infinity()"
    join, ends = f"ex_{stage.reducer}", (body.value, b.low, b.high)
    states = [State(DOUBLE, start, join, text(end)) for end in ends]
    states.append(State(CONDITION, "false", "||", text(b.free)))

    def finish(meaning: CodeMeaning, found: Sequence[Variable]) -> Approximate:
        value, *interval = found
        return Approximate(value, Interval(*interval))

    return states, finish
