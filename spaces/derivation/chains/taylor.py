"""Corrections of sums that are polynomials of a result, like ``sum((x - mean) * (x - mean))``.

Taylor's expansion about the result ``r`` is finite: ``H(t) = t + sum_k d**k D_k`` with
``d = r' - r`` and ``D_k = sum over x of (1 / k!) d^k f / d r^k``, again sums over the elements,
which the states of the pass hold. A ``D_k`` that is 0 whatever the elements are needs no state:
for ``(x - mean)**2`` that leaves ``t + n d**2``, the formula of Chan, Golub and LeVeque (1979).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import factorial
from typing import TYPE_CHECKING

from tilewright.spaces.derivation.algebra import (
    ONE,
    ZERO,
    constant,
    factors,
    minus,
    negated,
    number,
    over,
    plus,
    product,
    times,
)
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Series
from tilewright.spaces.derivation.chains.identities import is_zero, ratio
from tilewright.spaces.derivation.chains.separation import UnderivableError
from tilewright.spaces.language.tree import Binary, Expression, Negation, Number, Read

if TYPE_CHECKING:
    from tilewright.spaces.derivation.chains.corrections import Derivation

MAX_DEGREE = 4
Monomial = tuple[Expression, ...]
"""Factors that differ from element to element, in the order of their text."""


def about_result(derivation: Derivation, own: ChainReduction) -> ChainReduction:
    """Return the reduction with its Taylor series. May add sums that the series needs to the
    pass."""
    leaving = [f for f in factors(own.element) if not derivation.varies(f)]
    body = product(f for f in factors(own.element) if derivation.varies(f))
    body = _with_count_so_far(derivation, own, body)
    about = _result(derivation, body)
    if derivation.strict and not _is_right(derivation, about, leaving):
        raise UnderivableError(f"{own.element} is of elements that are far from {about}")
    if _degree(body, about) > MAX_DEGREE:
        raise UnderivableError(f"it is a polynomial of a degree above {MAX_DEGREE} in {about}")
    series: list[tuple[int, Expression]] = []
    f = body
    for power in range(1, MAX_DEGREE + 2):
        f = _derivative(f, about)
        if is_zero(f):
            break
        total = _sum_over_elements(derivation, own, f, power)
        if total != ZERO:
            series.append((power, total))
    correction = Series(about, tuple(series))
    result = times(own.state, product(leaving))
    return replace(own, element=body, correction=correction, result=result)


def _is_right(derivation: Derivation, about: Expression, leaving: Sequence[Expression]) -> bool:
    """Tell whether the mean is taken of elements from which a value near it was subtracted, and no
    factor was taken out of the sum.
    """
    if any(constant(factor) is None for factor in leaving):
        return False
    match about:
        case Binary("/", Read(name), _) if name in derivation.found:
            match derivation.found[name].element:
                case Binary("-", _, first):
                    return not derivation.varies(first)
    return False


def _with_count_so_far(derivation: Derivation, own: ChainReduction, f: Expression) -> Expression:
    """Return a mean that divides by the number of all elements, by the number of those so far
    instead: a part's mean is near its elements, and its sum over all elements is not."""
    match f:
        case Binary("/", total, Number(value)) if value == derivation.count:
            if derivation.depends(total) and not derivation.varies(total):
                return over(total, _count(derivation, own))
    return f.with_children(tuple(_with_count_so_far(derivation, own, c) for c in f.children))


def _count(derivation: Derivation, own: ChainReduction) -> Expression:
    """Return the state that counts elements, which is added if there is none."""
    for kept in derivation.found.values():
        if (kept.reducer, kept.element) == ("sum", ONE):
            return kept.state
    derivation.derive(f"{own.name}.n", "sum", own.axes, ONE)
    return derivation.found[f"{own.name}.n"].state


def _result(derivation: Derivation, body: Expression) -> Expression:
    """Return the one largest subtree that reads results and no elements."""

    def largest(node: Expression) -> Iterator[Expression]:
        if derivation.depends(node) and not derivation.varies(node):
            yield node
        else:
            for child in node.children:
                yield from largest(child)

    found = list(dict.fromkeys(largest(body)))
    if len(found) != 1:
        raise UnderivableError(f"{body} depends on {len(found)} different results")
    return found[0]


def _degree(f: Expression, r: Expression) -> int:
    """Return the degree of a polynomial in ``r``, where no terms cancel."""
    match f:
        case Binary("*", a, b) if f != r:
            return _degree(a, r) + _degree(b, r)
        case Negation() | Binary("+" | "-" | "/") if f != r:
            return max(_degree(child, r) for child in f.children)
    return int(r in f.walk())


def _derivative(f: Expression, r: Expression) -> Expression:
    if f == r:
        return ONE
    if r not in f.walk():
        return ZERO
    match f:
        case Negation(inner):
            return negated(_derivative(inner, r))
        case Binary("+", a, b):
            return plus(_derivative(a, r), _derivative(b, r))
        case Binary("-", a, b):
            return minus(_derivative(a, r), _derivative(b, r))
        case Binary("*", a, b):
            return plus(times(_derivative(a, r), b), times(a, _derivative(b, r)))
        case Binary("/", a, b) if r not in b.walk():
            return over(_derivative(a, r), b)
    raise UnderivableError(f"{f} is no polynomial in {r}")


def _sum_over_elements(
    derivation: Derivation, own: ChainReduction, f: Expression, power: int
) -> Expression:
    """Return the sum of ``f / power!`` over the elements of a part, in terms of the part's
    states."""
    share = 1.0 / factorial(power)
    total = _of_plain_sums(derivation, own, f)
    if total is not None:
        return ZERO if is_zero(total) else times(number(share), total)
    for kept in derivation.found.values():
        if kept.correction and (multiple := ratio(f, kept.element)) is not None:
            return times(number(share * float(multiple)), kept.state)
    name = f"{own.name}.{power}"
    derivation.derive(name, "sum", own.axes, f)
    return times(number(share), derivation.found[name].result)


def _of_plain_sums(derivation: Derivation, own: ChainReduction, f: Expression) -> Expression | None:
    """Return the sum of ``f`` by sums of monomials that the pass keeps; a count is added if it is
    all that is missing. None if others are."""
    sums = {
        _monomials(derivation, kept.element)[0][1]: kept
        for kept in derivation.found.values()
        if kept.reducer == "sum"
        and kept.correction is None
        and _is_monomial(derivation, kept.element)
    }
    monomials = _monomials(derivation, f)
    if {monomial for _, monomial in monomials} - set(sums) > {()}:
        return None
    total: Expression = ZERO
    for coefficient, monomial in monomials:
        if monomial and monomial not in sums:
            return None
        state = sums[monomial].state if monomial in sums else _count(derivation, own)
        total = plus(total, times(coefficient, state))
    return total


def _is_summed(derivation: Derivation, f: Expression) -> bool:
    sums = (r for r in derivation.found.values() if r.reducer == "sum" and r.correction is None)
    return any(kept.element == f for kept in sums)


def _is_monomial(derivation: Derivation, f: Expression) -> bool:
    found = _monomials(derivation, f)
    return len(found) == 1 and found[0][0] == ONE


def _monomials(derivation: Derivation, f: Expression) -> list[tuple[Expression, Monomial]]:
    """Return a polynomial as pairs (coefficient of the row, product of the element's factors).
    Where the pass sums up a difference or a sum, that is a factor as a whole."""
    if not derivation.varies(f):
        return [(f, ())]
    if isinstance(f, Binary) and f.operator in "+-" and _is_summed(derivation, f):
        return [(ONE, (f,))]
    match f:
        case Negation(inner):
            return [(negated(c), m) for c, m in _monomials(derivation, inner)]
        case Binary("+" | "-" as operator, left, right):
            further = _monomials(derivation, right)
            if operator == "-":
                further = [(negated(c), m) for c, m in further]
            return _monomials(derivation, left) + further
        case Binary("*", left, right):
            rights = _monomials(derivation, right)
            return [
                (times(a, b), tuple(sorted((*m, *n), key=str)))
                for a, m in _monomials(derivation, left)
                for b, n in rights
            ]
        case Binary("/", left, right) if not derivation.varies(right):
            return [(over(c, right), m) for c, m in _monomials(derivation, left)]
    return [(ONE, (f,))]
