"""Sums of products, with what all terms are multiplied by written once: ``a * b - a * c`` becomes
``a * (b - c)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.spaces.derivation.algebra import (
    ONE,
    ZERO,
    constant,
    factors,
    number,
    over,
    plus,
    product,
    times,
)
from tilewright.spaces.language.tree import Binary, Expression


@dataclass(frozen=True)
class _Term:
    """A product of a number and of factors that are none."""

    coefficient: float
    factors: tuple[Expression, ...]

    def without(self, common: Counter[Expression], by: float) -> Expression:
        """Return the product without some of its factors, and divided by a number."""
        left, kept = Counter(common), []
        for factor in self.factors:
            if left[factor] > 0:
                left[factor] -= 1
            else:
                kept.append(factor)
        return times(number(self.coefficient / by), quotient(kept))


def total(terms: Sequence[Expression]) -> Expression:
    """Return the sum of some terms."""
    if len(terms) == 1:
        return terms[0]
    found = [_term(term) for term in terms]
    common = Counter(found[0].factors)
    for term in found[1:]:
        common &= Counter(term.factors)
    sizes = {abs(term.coefficient) for term in found}
    shared = sizes.pop() if len(sizes) == 1 else 1.0
    summed = ZERO
    for term in found:
        summed = plus(summed, term.without(common, shared))
    return times(number(shared), product([quotient(common.elements()), summed]))


def quotient(found: Iterable[Expression]) -> Expression:
    """Return the product of some factors, divided by those whose reciprocals are among them."""
    every = list(found)
    below = [f.right for f in every if isinstance(f, Binary) and _is_reciprocal(f)]
    above = product(f for f in every if not _is_reciprocal(f))
    return over(above, product(below))


def _is_reciprocal(factor: Expression) -> bool:
    return isinstance(factor, Binary) and factor.operator == "/" and factor.left == ONE


def _term(node: Expression) -> _Term:
    values = [(constant(factor), factor) for factor in factors(node)]
    numbers = [value for value, _ in values if value is not None]
    return _Term(prod(numbers), tuple(factor for value, factor in values if value is None))
