"""Sums and products of expressions that leave out what says nothing; the factors of a product."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from tilewright.spaces.language.affine import Affine
from tilewright.spaces.language.tree import Binary, Expression, Negation, Number

ZERO: Expression = Number(0.0)
ONE: Expression = Number(1.0)


def plus(a: Expression, b: Expression) -> Expression:
    """Return ``a + b``."""
    if a == ZERO or b == ZERO:
        return b if a == ZERO else a
    x, y = constant(a), constant(b)
    if x is not None and y is not None:
        return number(x + y)
    return minus(a, b.inner) if isinstance(b, Negation) else Binary("+", a, b)


def minus(a: Expression, b: Expression) -> Expression:
    """Return ``a - b``."""
    if a == b:
        return ZERO
    if a == ZERO or b == ZERO:
        return negated(b) if a == ZERO else a
    if isinstance(b, Negation) or (constant(a) is not None and constant(b) is not None):
        return plus(a, negated(b))
    return Binary("-", a, b)


def negated(a: Expression) -> Expression:
    """Return ``-a``."""
    if a == ZERO:
        return ZERO
    return a.inner if isinstance(a, Negation) else Negation(a)


def times(a: Expression, b: Expression) -> Expression:
    """Return ``a * b``, a constant first."""
    x, y = constant(a), constant(b)
    if y is not None:
        return times(b, a) if x is None else number(x * y)
    if x is None:
        return Binary("*", a, b)
    if x == 0:
        return ZERO
    match b:
        case Binary("*", Number(further), inner):
            return times(number(x * further), inner)
        case Negation(inner):
            return times(number(-x), inner)
    if abs(x) != 1:
        return negated(times(number(-x), b)) if x < 0 else Binary("*", Number(x), b)
    return b if x > 0 else negated(b)


def constant(a: Expression) -> float | None:
    """Return the number that ``a`` is; None if it is none."""
    match a:
        case Number(value):
            return value
        case Negation(Number(value)):
            return -value
    return None


def over(a: Expression, b: Expression) -> Expression:
    """Return ``a / b``."""
    return a if b == ONE or a == ZERO else Binary("/", a, b)


def number(value: float) -> Expression:
    """A constant of any sign: the numbers of the language are never negative."""
    return Number(value) if value >= 0 else Negation(Number(-value))


def index_of(form: Affine) -> Expression:
    """Return an index that is written from its normal form."""
    terms = (times(number(float(factor)), atom) for atom, factor in form.terms)
    return plus(reduce(plus, terms, ZERO), number(float(form.constant)))


def product(factors: Iterable[Expression]) -> Expression:
    """Return the factors, multiplied from left to right."""
    return reduce(times, factors, ONE)


def factors(body: Expression) -> tuple[Expression, ...]:
    """List the factors of ``body`` from left to right; a divisor becomes a reciprocal."""
    match body:
        case Binary("*", left, right):
            return (*factors(left), *factors(right))
        case Binary("/", left, right):
            return (*factors(left), *(over(ONE, factor) for factor in factors(right)))
        case Negation(inner):
            return (number(-1.0), *factors(inner))
    return (body,)
