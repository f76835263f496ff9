"""Sums of squares about a rounded mean, in a pass of their own once the mean is known.

With ``m`` the mean of shifted elements ``x - p`` (:mod:`spaces.derivation.chains.shifting`), ``r``
the sum ``p + m`` rounded, and ``d = m - (r - p)`` its rounding error, sums over n elements are

    sum((x - p - m)**2) = sum((x - r)**2) - n d**2

so that each element needs one subtraction only, as without a shift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Binary, Call, Expression, Number, Read

ZERO = Number(0.0)


def about_rounded(
    program: Program, r: ChainReduction, expanded: Callable[[Expression], Expression]
) -> ChainReduction:
    """Return a sum of such squares so; any other reduction as it is."""
    match r.element:
        case Binary("*", Binary("-", Binary("-", x, p) as term, m) as left, right) if left == right:
            if r.reducer == "sum" and (count := _is_mean(program, m, term, expanded)):
                rounded = Binary("+", p, m)
                lost = Binary("-", m, Binary("-", rounded, p))
                excess = Binary("*", count, Binary("*", lost, lost))
                distance = Binary("-", x, rounded)
                squares = Binary("*", distance, distance)
                result = Call("max", (Binary("-", r.state, excess), ZERO))
                return replace(r, element=squares, result=result)
    return r


def _is_mean(
    program: Program,
    mean: Expression,
    term: Expression,
    expanded: Callable[[Expression], Expression],
) -> Number | None:
    """Return the number of all ``term``, if it is their sum that is divided by it."""
    match mean:
        case Binary("/", Read(name), Number() as count) if name in program.stage:
            stage = program.stage[name]
            if stage.reducer == "sum" and expanded(stage.body) == term:
                return count
    return None
