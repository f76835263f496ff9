"""Test whether expressions are equal as rational functions, by evaluation at random points.

Values are integers modulo a prime of 61 bits, so they are exact. A rational function that is 0 at a
random point is 0, except with a probability of its degree over the prime (Schwartz 1980, Zippel
1979). Reads and calls are variables of their own: functions never cancel.
"""

from __future__ import annotations

import operator as operators
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import isqrt

from tilewright.spaces.language.tree import Binary, Expression, Negation, Number

PRIME = 2**61 - 1
_POINTS = 2

Point = Mapping[Expression, int]


def is_zero(f: Expression) -> bool:
    """Tell whether ``f`` is 0 for all values of its reads and calls."""
    return ratio(f, Number(1.0)) == 0


def ratio(f: Expression, g: Expression) -> Fraction | None:
    """Return the number that ``f`` is ``g`` times; None if there is none."""
    variables = dict.fromkeys((*_variables(f), *_variables(g)))
    generator = random.Random(0)
    known: int | None = None
    for _ in range(_POINTS):
        point = {variable: generator.randrange(1, PRIME) for variable in variables}
        try:
            found = _quotient(_value(f, point), _value(g, point))
        except ZeroDivisionError:
            return None
        if known not in (None, found):
            return None
        known = found
    return _rational(known or 0)


def _value(f: Expression, point: Point) -> int:
    match f:
        case Binary(operator, left, right) if operator in _RULES:
            return _RULES[operator](_value(left, point), _value(right, point)) % PRIME
        case Number(constant):
            return _quotient(*constant.as_integer_ratio())
        case Negation(inner):
            return -_value(inner, point) % PRIME
    return point[f]


def _quotient(a: int, b: int) -> int:
    if b % PRIME == 0:
        raise ZeroDivisionError
    return a % PRIME if b == 1 else a * pow(b, -1, PRIME) % PRIME


_RULES = {"+": operators.add, "-": operators.sub, "*": operators.mul, "/": _quotient}


def _variables(f: Expression) -> Iterator[Expression]:
    if isinstance(f, Negation) or (isinstance(f, Binary) and f.operator in _RULES):
        for child in f.children:
            yield from _variables(child)
    elif not isinstance(f, Number):
        yield f


def _rational(value: int) -> Fraction | None:
    """Return the fraction of small numbers that is ``value`` modulo the prime (Wang 1981)."""
    limit = isqrt(PRIME // 2)
    (a, x), (b, y) = (PRIME, 0), (value, 1)
    while b > limit:
        a, x, b, y = b, y, a % b, x - a // b * y
    return Fraction(b, y) if 0 < abs(y) <= limit else None
