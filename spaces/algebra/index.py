"""Index expressions: sums of integer C expressions that simplify themselves as they grow.

An :class:`Index` is ``constant + sum(coefficient * atom)``, and every atom is a variable, a
quotient or a remainder, all non-negative. What is known of an atom's extent (it is in
``range(extent)``) removes divisions, remainders and predicates: with ``j < 8``,
``(8 * i + j) // 8`` is ``i``, and ``8 * (w // 8) + w % 8`` is ``w``. Mappings and layouts do all
their arithmetic here, so that generated code holds no operation that says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd

_ATOMIC = re.compile(r"(\(\w+\))?[\w.]+\Z")
LARGEST_INT = 2**31 - 1
REMEMBERED = 4096  # divisions, since a kernel repeats each of its own dozens of times


@dataclass(frozen=True)
class Variable:
    """A C expression with a value in ``range(extent)``, or just non-negative (None)."""

    text: str
    extent: int | None = None


@dataclass(frozen=True)
class Quotient:
    """``dividend // divisor``, not to be simplified further."""

    dividend: Index
    divisor: int

    @cached_property
    def extent(self) -> int | None:
        """Number of values, None if unbounded."""
        extent = self.dividend.extent
        return None if extent is None else -(-extent // self.divisor)

    @property
    def text(self) -> str:
        """C text."""
        return f"{self.dividend} / {self.divisor}"


@dataclass(frozen=True)
class Remainder:
    """``dividend % divisor``, not to be simplified further."""

    dividend: Index
    divisor: int

    @property
    def extent(self) -> int:
        """Number of values."""
        return self.divisor

    @property
    def text(self) -> str:
        """C text."""
        return f"{self.dividend} % {self.divisor}"


Atom = Variable | Quotient | Remainder


@dataclass(frozen=True)
class Index:
    """A non-negative integer expression. ``str()`` is C text that is safe inside any other
    expression (in parentheses unless it is one word); :attr:`text` has no outer parentheses."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    @cached_property
    def extent(self) -> int | None:
        """One more than the greatest value; None if that is not known."""
        greatest = self.constant
        for atom, coefficient in self.terms:
            if atom.extent is None:
                return None
            greatest += coefficient * (atom.extent - 1)
        return greatest + 1

    @property
    def value(self) -> int | None:
        """The value of a constant; None of anything else."""
        return None if self.terms else self.constant

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other) if other else self
        if not (self.terms and other.terms):
            return Index(self.terms or other.terms, self.constant + other.constant)
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + coefficient
        return _rejoined(terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        if factor in (0, 1):
            return self if factor else Index()
        return Index(tuple((a, c * factor) for a, c in self.terms), self.constant * factor)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Index:
        return _quotient(self, divisor)

    def __mod__(self, divisor: int) -> Index:
        return _remainder(self, divisor)

    @property
    def text(self) -> str:
        """C text for a place of its own: a subscript, an argument, one side of ``=``. Products are
        of 64 bits where 32 do not hold the value, whatever the types of variables are."""
        only = self._only_atom()
        if only is not None:
            return only.text
        wide = "L" if self.extent is not None and self.extent > LARGEST_INT else ""
        words = [
            _safe(atom.text) if c == 1 else f"{c}{wide} * {_safe(atom.text)}"
            for atom, c in self.terms
        ]
        if self.constant or not words:
            words.append(str(self.constant))
        return " + ".join(words)

    def __str__(self) -> str:
        return _safe(self.text)

    def _split(self, divisor: int) -> tuple[Index, Index]:
        """Return ``(high, low)`` with ``self == high + low`` and all of ``high`` divisible."""
        high = tuple(term for term in self.terms if term[1] % divisor == 0)
        low = tuple(term for term in self.terms if term[1] % divisor)
        rest = self.constant % divisor
        return Index(high, self.constant - rest), Index(low, rest)

    def _exactly(self, divisor: int) -> Index:
        return Index(tuple((a, c // divisor) for a, c in self.terms), self.constant // divisor)

    def _common_divisors(self, number: int) -> list[int]:
        common = {gcd(coefficient, number) for _, coefficient in self.terms}
        return sorted(common - {1}, reverse=True)

    def _only_atom(self) -> Atom | None:
        if len(self.terms) == 1 and self.terms[0][1] == 1 and not self.constant:
            return self.terms[0][0]
        return None


def index(value: Index | int | str, extent: int | None = None) -> Index:
    """Return ``value`` as an index; text becomes a variable in ``range(extent)``.

    Text must be a signed C integer expression without side effects.
    """
    if isinstance(value, Index):
        return value
    if isinstance(value, int):
        return Index(constant=value)
    if value.isdigit():
        return Index(constant=int(value))
    if extent == 1:
        return Index()
    return Index(((Variable(value, extent), 1),))


@lru_cache(maxsize=REMEMBERED)
def _quotient(dividend: Index, divisor: int) -> Index:
    high, low = dividend._split(divisor)
    whole = high._exactly(divisor)
    if _below(low, divisor):
        return whole
    for common in low._common_divisors(divisor):
        multiples, rest = low._split(common)
        if _below(rest, common):
            return whole + multiples._exactly(common) // (divisor // common)
    only = low._only_atom()
    if isinstance(only, Quotient):
        return whole + only.dividend // (only.divisor * divisor)
    return whole + Index(((Quotient(low, divisor), 1),))


@lru_cache(maxsize=REMEMBERED)
def _remainder(dividend: Index, divisor: int) -> Index:
    low = dividend._split(divisor)[1]
    if _below(low, divisor):
        return low
    for common in low._common_divisors(divisor):
        multiples, rest = low._split(common)
        if _below(rest, common):
            return multiples._exactly(common) % (divisor // common) * common + rest
    only = low._only_atom()
    if isinstance(only, Remainder) and only.divisor % divisor == 0:
        return only.dividend % divisor
    return Index(((Remainder(low, divisor), 1),))


def _safe(text: str) -> str:
    return text if _ATOMIC.match(text) else f"({text})"


def _below(value: Index, limit: int) -> bool:
    return value.extent is not None and value.extent <= limit


def _rejoined(terms: Mapping[Atom, int], constant: int) -> Index:
    """Return the sum, with ``c * d * (e // d) + c * (e % d)`` put together again as ``c * e``."""
    for atom, coefficient in terms.items():
        if isinstance(atom, Remainder):
            quotient = (atom.dividend // atom.divisor)._only_atom()
            if quotient and terms.get(quotient) == coefficient * atom.divisor:
                rest = tuple((a, c) for a, c in terms.items() if a not in (atom, quotient))
                return Index(rest, constant) + atom.dividend * coefficient
    return Index(tuple(terms.items()), constant)
