"""Whole numbers as sums that simplify themselves: places of elements, and the C text of them.

An :class:`Index` is ``constant + sum(coefficient * atom)``, all integers of any sign. Atoms are
variables, quotients, remainders, entries of tables, and extents that only the call gives. What is
known of their values removes divisions and predicates: with ``j < 8``, ``(8 * i + j) // 8`` is
``i``, and ``8 * (w // 8) + w % 8`` is ``w``. Derivations, mappings and layouts do all their
arithmetic here, so that generated code holds no operation that says nothing.

Terms keep the order in which they were added, and the text has it. :func:`total` sorts them, so
that equal sums of derivations are equal and hash alike, however a program spells them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd
from typing import Any

from tilewright.spaces.algebra.atoms import (
    Atom,
    Entry,
    Extent,
    Quotient,
    Remainder,
    Span,
    Variable,
    names_of,
    safe,
    term_text,
    with_inside,
    within,
)

LARGEST_INT = 2**31 - 1
REMEMBERED = 4096  # divisions, since a kernel repeats each of its own dozens of times


@dataclass(frozen=True)
class Index:
    """An integer expression. ``str()`` is C text that is safe inside any other expression (in
    parentheses unless it is one word); :attr:`text` has no outer parentheses."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.terms, self.constant))
        return found

    def __reduce__(self) -> tuple[type[Index], tuple[Any, ...]]:
        return Index, (self.terms, self.constant)  # hashes of text differ between processes

    @cached_property
    def span(self) -> Span:
        """The least and the greatest value. Exact where the atoms are independent variables."""
        low: int | None = self.constant
        high: int | None = self.constant
        for atom, coefficient in self.terms:
            if isinstance(atom, Variable) and isinstance(atom.extent, Index):
                return self._at_end(least=True).span[0], self._at_end(least=False).span[1]
            least, most = atom.span
            if coefficient < 0:
                least, most = most, least
            low = None if low is None or least is None else low + coefficient * least
            high = None if high is None or most is None else high + coefficient * most
        return low, high

    @property
    def extent(self) -> int | None:
        """One more than the greatest value; None if that is not known."""
        most = self.span[1]
        return None if most is None else most + 1

    @property
    def may_be_negative(self) -> bool:
        """Tell whether some value may be below 0."""
        least = self.span[0]
        return least is None or least < 0

    @property
    def divisor(self) -> int:
        """The greatest number that is seen to divide all values; 0 where all are 0."""
        return gcd(self.constant, *(coefficient for _, coefficient in self.terms))

    @property
    def value(self) -> int | None:
        """The value of a constant; None of anything else."""
        return None if self.terms else self.constant

    # -- arithmetic ----------------------------------------------------------------------------

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other) if other else self
        if not (self.terms and other.terms):
            return Index(self.terms or other.terms, self.constant + other.constant)
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + coefficient
            if not terms[atom]:
                del terms[atom]
        return _rejoined(terms, self.constant + other.constant)

    def __sub__(self, other: Index | int) -> Index:
        return self + other * -1

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

    # -- parts ---------------------------------------------------------------------------------

    def atoms(self) -> Iterator[Atom]:
        """Yield all atoms, and those within them, some perhaps more than once."""
        for atom, _ in self.terms:
            yield atom
            for inner in within(atom):
                yield from inner.atoms()

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All entries of tables that the value depends on, each once."""
        return tuple(dict.fromkeys(atom for atom in self.atoms() if isinstance(atom, Entry)))

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """All variables that the value may depend on."""
        return frozenset(atom for atom in self.atoms() if isinstance(atom, Variable))

    @cached_property
    def names(self) -> frozenset[str]:
        """The texts of these variables."""
        return frozenset(variable.text for variable in self.variables)

    def coefficient(self, name: str) -> int:
        """Return the coefficient of a variable; 0 if it is not a term."""
        for atom, coefficient in self.terms:
            if isinstance(atom, Variable) and atom.text == name:
                return coefficient
        return 0

    def step(self, name: str) -> int | None:
        """Return how much the value grows with each step of a variable; None if that varies."""
        found = 0
        for atom, coefficient in self.terms:
            if isinstance(atom, Variable):
                found = coefficient if atom.text == name else found
            elif name in names_of(atom):
                return None
        return found

    def part(self, names: Iterable[str]) -> Index:
        """Return the terms that depend on some variables, without the constant."""
        wanted = frozenset(names)
        return Index(tuple(t for t in self.terms if not wanted.isdisjoint(names_of(t[0]))))

    def without(self, names: Iterable[str]) -> Index:
        """Return the index without the terms that are these variables."""
        gone = frozenset(names)
        kept = [t for t in self.terms if not (isinstance(t[0], Variable) and t[0].text in gone)]
        return Index(tuple(kept), self.constant) if len(kept) < len(self.terms) else self

    @property
    def compound(self) -> tuple[tuple[Atom, int], ...]:
        """The terms that are no variables."""
        return tuple(term for term in self.terms if not isinstance(term[0], Variable))

    @cached_property
    def ordered(self) -> Index:
        """The index with its terms, also those within atoms, in the order of their formulas."""
        terms: dict[Atom, int] = {}
        for atom, coefficient in self.terms:
            inside = with_inside(atom, lambda index: index.ordered)
            terms[inside] = terms.get(inside, 0) + coefficient
        kept = [term for term in terms.items() if term[1]]
        return Index(tuple(sorted(kept, key=lambda term: term[0].formula)), self.constant)

    def replaced(self, atom: Callable[[Atom], Index]) -> Index:
        """Return the sum with another index in the place of each atom."""
        result = Index((), self.constant)
        for old, coefficient in self.terms:
            result = result + atom(old) * coefficient
        return result

    def at(self, values: Mapping[str, Index]) -> Index:
        """Return the index with ``values`` in the place of the variables and entries that have
        these formulas, wherever they stand."""

        def value(atom: Atom) -> Index:
            match atom:
                case Variable() | Entry() if atom.formula in values:
                    return values[atom.formula]
                case Quotient(dividend, divisor):
                    return dividend.at(values) // divisor
                case Remainder(dividend, divisor):
                    return dividend.at(values) % divisor
            return Index(((with_inside(atom, lambda index: index.at(values)), 1),))

        return self.replaced(value) if values else self

    def loaded(self, load: Callable[[Entry], Index]) -> Index:
        """Return the index with what ``load`` gives in the place of the entries of tables."""
        return self.at({entry.formula: load(entry) for entry in self.entries})

    # -- text ----------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """C text for a place of its own: a subscript, an argument, one side of ``=``. Products are
        of 64 bits where 32 do not hold the value, whatever the types of variables are."""
        if not self.terms:
            return str(self.constant)
        if only := self._only_atom():
            return only.text
        words = [
            safe(atom.text) if coefficient == 1 else term_text(atom, coefficient, self._suffix)
            for atom, coefficient in self.terms
        ]
        if self.constant:
            words.append(str(self.constant))
        return " + ".join(words)

    @cached_property
    def _suffix(self) -> str:
        low, high = self.span
        return "L" if (high or 0) > LARGEST_INT or (low or 0) < -LARGEST_INT else ""

    def __str__(self) -> str:
        return safe(self.text)

    @cached_property
    def formula(self) -> str:
        """The text in sentences, and what sorts terms: ``2 * i + (j)//4 - 1``."""
        words = [a.formula if c == 1 else f"{c} * {a.formula}" for a, c in self.terms]
        if self.constant or not words:
            words.append(str(self.constant))
        return " + ".join(words).replace("+ -", "- ")

    # -- division ------------------------------------------------------------------------------

    def _at_end(self, least: bool) -> Index:
        """Return the index where variables below open extents are what makes it least, or most."""
        result = Index((), self.constant)
        for atom, coefficient in self.terms:
            if not _has_open_extent(atom):
                result = result + Index(((atom, coefficient),))
            elif (coefficient < 0) == least:
                assert isinstance(atom, Variable)
                assert isinstance(atom.extent, Index)
                result = result + (atom.extent - 1) * coefficient
        return result

    def _known_quotient(self, divisor: int) -> int | None:
        """Return ``self // divisor`` if that is the same number for all values."""
        low, high = self.span
        if low is None or high is None or low // divisor != high // divisor:
            return None
        return low // divisor

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


def variable(text: str, extent: int | Index | None = None) -> Index:
    """Return the index that is one variable, also where it has a single value."""
    return Index(((Variable(text, extent), 1),))


def extent(name: str, least: int, most: int, multiple: int = 1) -> Index:
    """Return an extent that only the call gives, from ``least`` to ``most``, both multiples of
    ``multiple`` as the extent is."""
    return Index(((Extent(name, least // multiple, most // multiple, multiple), multiple),))


def total(products: Iterable[tuple[Index, int]], constant: int = 0) -> Index:
    """Add up indices times numbers, with the terms in the order of their formulas."""
    result = Index((), constant)
    for factor, number in products:
        result = result + factor * number
    return result.ordered


def _has_open_extent(atom: Atom) -> bool:
    return isinstance(atom, Variable) and isinstance(atom.extent, Index)


@lru_cache(maxsize=REMEMBERED)
def _quotient(dividend: Index, divisor: int) -> Index:
    high, low = dividend._split(divisor)
    whole = high._exactly(divisor)
    if (known := low._known_quotient(divisor)) is not None:
        return whole + known
    for common in low._common_divisors(divisor):
        multiples, rest = low._split(common)
        if (known := rest._known_quotient(common)) is not None:
            return whole + (multiples._exactly(common) + known) // (divisor // common)
    only = low._only_atom()
    if isinstance(only, Quotient):
        return whole + only.dividend // (only.divisor * divisor)
    return whole + Index(((Quotient(low, divisor), 1),))


@lru_cache(maxsize=REMEMBERED)
def _remainder(dividend: Index, divisor: int) -> Index:
    low = dividend._split(divisor)[1]
    if (known := low._known_quotient(divisor)) is not None:
        return low + known * -divisor
    for common in low._common_divisors(divisor):
        multiples, rest = low._split(common)
        if (known := rest._known_quotient(common)) is not None:
            high = (multiples._exactly(common) + known) % (divisor // common)
            return high * common + rest + known * -common
    only = low._only_atom()
    if isinstance(only, Remainder) and only.divisor % divisor == 0:
        return only.dividend % divisor
    if low.may_be_negative:
        return low - low // divisor * divisor
    return Index(((Remainder(low, divisor), 1),))


def _rejoined(terms: Mapping[Atom, int], constant: int) -> Index:
    """Return the sum, with ``c * d * (e // d) + c * (e % d)`` put together again as ``c * e``."""
    for atom, coefficient in terms.items():
        if isinstance(atom, Remainder):
            quotient = (atom.dividend // atom.divisor)._only_atom()
            if quotient and terms.get(quotient) == coefficient * atom.divisor:
                rest = tuple((a, c) for a, c in terms.items() if a not in (atom, quotient))
                return Index(rest, constant) + atom.dividend * coefficient
    return Index(tuple(terms.items()), constant)
