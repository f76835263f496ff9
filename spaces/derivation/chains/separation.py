"""Separate a summand into terms of row factors and element factors.

A later reduction of a row reads results of earlier ones, which are the same for all elements. Where
its summand can be written as ``sum_i number_i exp(u_i) q_i exp(v_i) c_i`` with u and q of the row,
and v and c of the element, the factors that change with the results can be taken out of the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.spaces.derivation.algebra import ONE, ZERO, minus, number, over, plus, times
from tilewright.spaces.language.tree import Binary, Call, Expression, Negation, Number, Select

EXPONENTIALS = ("exp", "exp2")
MAX_TERMS = 64
"""Terms of a summand beyond which it is not taken apart: products of sums double them each time."""


class UnderivableError(Exception):
    """Says why a reduction has no correction, in words."""


@dataclass(frozen=True)
class Term:
    """``number * f(u) * q * f(v) * c``, where f is ``exp``, ``exp2`` or missing.

    If ``conditions`` are given, ``f(u) f(v)`` is replaced by 0 unless each of them holds (or fails,
    if it is paired with False). The unselected value might be infinite, and 0 times infinity is
    NaN.
    """

    number: float = 1.0
    function: str | None = None
    u: Expression = ZERO
    q: Expression = ONE
    v: Expression = ZERO
    c: Expression = ONE
    conditions: tuple[tuple[Expression, bool], ...] = ()

    def times(self, other: Term) -> Term:
        """Return the product."""
        return Term(
            self.number * other.number,
            self._function(other),
            plus(self.u, other.u),
            times(self.q, other.q),
            plus(self.v, other.v),
            times(self.c, other.c),
            self.conditions + other.conditions,
        )

    def over(self, other: Term) -> Term:
        """Return the quotient."""
        if other.conditions:
            raise UnderivableError("it divides by an exponential that is 0 for some elements")
        return Term(
            self.number / other.number,
            self._function(other),
            minus(self.u, other.u),
            over(self.q, other.q),
            minus(self.v, other.v),
            over(self.c, other.c),
            self.conditions,
        )

    def _function(self, other: Term) -> str | None:
        if self.function and other.function and self.function != other.function:
            raise UnderivableError("it multiplies an exp by an exp2")
        return self.function or other.function


@dataclass(frozen=True)
class Separation:
    """Takes expressions apart. ``varies`` says whether one differs from element to element,
    ``depends`` whether it reads a result that is not final yet."""

    varies: Callable[[Expression], bool]
    depends: Callable[[Expression], bool]

    def terms(self, f: Expression) -> list[Term]:
        """Return the terms of ``f``; :class:`UnderivableError` if results and elements stay
        mixed."""
        if isinstance(f, Number):
            return [Term(number=f.value)] if f.value else []
        if not self.depends(f):
            return [Term(c=f) if self.varies(f) else Term(q=f)]
        match f:
            case Negation(inner):
                return [_scaled(t, -1.0) for t in self.terms(inner)]
            case Binary("*", left, right):
                lefts, rights = self.terms(left), self.terms(right)
                if len(lefts) * len(rights) > MAX_TERMS:
                    raise UnderivableError(f"it has more than {MAX_TERMS} terms")
                return [a.times(b) for a in lefts for b in rights]
            case Binary("/", left, right) if len(below := self.terms(right)) == 1:
                return [a.over(below[0]) for a in self.terms(left)]
            case Call(function, (inner,)) if function in EXPONENTIALS:
                return [self._exponential(function, inner)]
        if not self.varies(f):
            return [Term(q=f)]
        match f:
            case Binary("+", left, right):
                return self.terms(left) + self.terms(right)
            case Binary("-", left, right):
                return self.terms(left) + [_scaled(t, -1.0) for t in self.terms(right)]
            case Select(condition, then, otherwise) if not self.depends(condition):
                chosen = [_where(condition, t, True) for t in self.terms(then)]
                return chosen + [_where(condition, t, False) for t in self.terms(otherwise)]
        raise UnderivableError(
            f"{f} mixes results and elements, and no correction is known for that"
        )

    def _exponential(self, function: str, exponent: Expression) -> Term:
        """The exponent must be a plain sum of results and of elements."""
        u, v = ZERO, ZERO
        for t in self.terms(exponent):
            if t.function:
                raise UnderivableError(f"{function}({exponent}) has an exponential in its exponent")
            if t.c == ONE and self.depends(t.q):
                u = _plus(u, t.number, t.q)
            elif not self.depends(t.q):
                v = _plus(v, t.number, times(t.q, t.c))
            else:
                raise UnderivableError(
                    f"the exponent of {function}({exponent}) multiplies a result by an element"
                )
        return Term(function=function, u=u, v=v)


def _plus(total: Expression, factor: float, further: Expression) -> Expression:
    if factor < 0:
        return minus(total, times(number(-factor), further))
    return plus(total, times(number(factor), further))


def _scaled(term: Term, factor: float) -> Term:
    return replace(term, number=term.number * factor)


def _where(condition: Expression, term: Term, holds: bool) -> Term:
    """Return the term where the condition holds (or does not), and 0 elsewhere."""
    if term.function:
        term = replace(term, conditions=(*term.conditions, (condition, holds)))
        if term.c == ONE:
            return term
    return replace(term, c=_chosen(condition, term.c, holds))


def _chosen(condition: Expression, value: Expression, holds: bool) -> Expression:
    return Select(condition, value, ZERO) if holds else Select(condition, ZERO, value)


def element(term: Term) -> Expression:
    """Build the part of a term that is summed while its results are not final: all but ``q``."""
    exponent = plus(term.v, term.u)
    power: Expression = ONE
    if term.function and exponent != ZERO:
        power = Call(term.function, (exponent,))
    for condition, holds in term.conditions:
        power = _chosen(condition, power, holds)
    return times(power, times(number(term.number), term.c))
