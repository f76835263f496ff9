"""Indices in their normal form: a sum of whole multiples of atoms, and a constant.

An atom is an axis, an entry of an integer array, or a quotient or remainder that has no simpler
form. ``2 * p + r - 1`` is 2 p + 1 r - 1; ``(4 * i + j) // 4`` stays an atom where ``4 * i // 4``
does not.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass

from tilewright.spaces.dtypes import EXACT_WIDE
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
)


@dataclass(frozen=True)
class Affine:
    """``constant`` plus the sum of each atom times its coefficient, none of which is zero."""

    terms: tuple[tuple[Expression, int], ...]
    constant: int = 0

    def __add__(self, other: Affine) -> Affine:
        sums = dict(self.terms)
        for atom, coefficient in other.terms:
            sums[atom] = sums.get(atom, 0) + coefficient
        terms = tuple((atom, c) for atom, c in sums.items() if c)
        return Affine(terms, _bounded(self.constant + other.constant))

    def __sub__(self, other: Affine) -> Affine:
        return self + other.times(-1)

    def times(self, factor: int) -> Affine:
        """Return a whole multiple."""
        terms = tuple((atom, _bounded(c * factor)) for atom, c in self.terms if factor)
        return Affine(terms, _bounded(self.constant * factor))


def affine(index: Expression) -> Affine:
    """Return the normal form of an index; :class:`InputError` if it is none."""
    match index:
        case Number(value):
            return Affine((), _whole(index, value))
        case AxisValue():
            return Affine(((index, 1),))
        case Read(outside=outside):
            _whole(index, outside or 0.0)
            return Affine(((index, 1),))
        case Negation(inner):
            return affine(inner).times(-1)
        case Binary("+", left, right):
            return affine(left) + affine(right)
        case Binary("-", left, right):
            return affine(left) - affine(right)
        case Binary("*", left, right):
            return _product(index, affine(left), affine(right))
        case Binary("//" | "%" as operator, left, right):
            return _divided(operator, left, right)
    raise InputError(
        f"{index} is no index; allowed: whole numbers, axes, entries of integer operands, "
        "+ - *, and // % by whole numbers"
    )


def differences(condition: Expression, whole: Container[str] = ()) -> Iterator[Affine]:
    """Yield the differences that are not negative where a comparison of indices holds; none for
    other conditions, and where a difference is beyond what indices may be.

    Entries of the arrays ``whole`` are indices.
    """
    if not isinstance(condition, Comparison):
        return
    if any(read.name not in whole for read in condition.reads):
        return
    with suppress(InputError):
        yield from _not_negative(
            condition.operator, affine(condition.left), affine(condition.right)
        )


def _not_negative(operator: str, left: Affine, right: Affine) -> Iterator[Affine]:
    one = Affine((), 1)
    if operator in ("<=", "=="):
        yield right - left
    if operator in (">=", "=="):
        yield left - right
    if operator == "<":
        yield right - left - one
    if operator == ">":
        yield left - right - one


def _product(index: Expression, left: Affine, right: Affine) -> Affine:
    if left.terms and right.terms:
        raise InputError(f"index {index} multiplies axes; allowed: an axis times a whole number")
    return left.times(right.constant) if left.terms else right.times(left.constant)


def _divided(operator: str, inner: Expression, by: Expression) -> Affine:
    divided, divisors = affine(inner), affine(by)
    if divisors.terms or divisors.constant < 1:
        raise InputError(f"an index is divided by {by}; allowed: whole numbers from 1 on")
    divisor = divisors.constant
    whole = all(coefficient % divisor == 0 for _, coefficient in divided.terms)
    if operator == "%" and whole:
        return Affine((), divided.constant % divisor)
    if operator == "//" and whole:
        terms = tuple((atom, c // divisor) for atom, c in divided.terms)
        return Affine(terms, divided.constant // divisor)
    return Affine(((Binary(operator, inner, Number(float(divisor))), 1),))


def _whole(index: Expression, value: float) -> int:
    if not float(value).is_integer():
        raise InputError(f"index {index} is no whole number")
    return _bounded(int(value))


def _bounded(value: int) -> int:
    if abs(value) > EXACT_WIDE:
        raise InputError(f"{shown(value)} in an index is out of range; allowed: up to 2**53")
    return value
