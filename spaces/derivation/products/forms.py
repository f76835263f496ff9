"""Integer index expressions in a normal form, so that equal indices look equal.

A :class:`Form` is ``constant + sum(coefficient * atom)``, all integers of any sign. An atom is an
axis, a quotient by a constant that cannot be simplified further, or an entry of an integer operand.
A remainder ``e % d`` is ``e - d * (e // d)``. What is known of the axes (each is in
``range(extent)``) removes quotients: with ``i < 4``, ``(4 * o + i) // 4`` is ``o``.
:mod:`spaces.algebra.index` is the same idea for the unsigned expressions of generated code, and
:mod:`spaces.language.affine` refuses what is no index at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

Limits = Mapping[str, int]
"""Axis, or integer operand, to the number that all its values are below; none is negative."""


@dataclass(frozen=True)
class Quotient:
    """``dividend // divisor``, rounded down."""

    dividend: Form
    divisor: int

    def __str__(self) -> str:
        return f"({self.dividend})//{self.divisor}"


@dataclass(frozen=True)
class Entry:
    """``table[indices]``, an element of an integer operand."""

    table: str
    indices: tuple[Form, ...]

    def __str__(self) -> str:
        return f"{self.table}[{', '.join(map(str, self.indices))}]"


Atom = str | Quotient | Entry


@dataclass(frozen=True)
class Form:
    """``constant + sum(coefficient * atom)``; no coefficient is 0, and terms are in the order of
    their text. ``+``, ``-`` and ``*`` by an integer give forms."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Form) -> Form:
        constant = self.constant + other.constant
        if not (self.terms and other.terms):
            return Form(self.terms or other.terms, constant)
        return total((*self.terms, *other.terms), constant)

    def __mul__(self, factor: int) -> Form:
        if factor in (0, 1):
            return self if factor else Form()
        return Form(tuple((a, c * factor) for a, c in self.terms), self.constant * factor)

    def __sub__(self, other: Form) -> Form:
        return self + other * -1

    def __str__(self) -> str:
        words = [str(a) if c == 1 else f"{c} * {a}" for a, c in self.terms]
        if self.constant or not words:
            words.append(str(self.constant))
        return " + ".join(words).replace("+ -", "- ")

    @cached_property
    def axes(self) -> frozenset[str]:
        """All axes that the value may depend on."""
        return frozenset(axis for atom, _ in self.terms for axis in axes_of(atom))

    def coefficient(self, atom: Atom) -> int:
        """Return the coefficient of ``atom``; 0 if it is not in the form."""
        return dict(self.terms).get(atom, 0)

    def part(self, axes: Iterable[str]) -> Form:
        """Return the terms that depend on some of ``axes``, without the constant."""
        wanted = frozenset(axes)
        return Form(tuple(term for term in self.terms if not wanted.isdisjoint(axes_of(term[0]))))

    def at(self, axes: Mapping[str, np.ndarray], tables: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the values at points: arrays of int64 for every axis, that broadcast. Parts of an
        uneven axis may be beyond its end, where a table gives its nearest entry."""
        result = np.asarray(self.constant, np.int64)
        for atom, coefficient in self.terms:
            result = result + coefficient * _value(atom, axes, tables)
        return result


def total(terms: Iterable[tuple[Atom, int]], constant: int) -> Form:
    """Return the form of a sum in which atoms may occur more than once."""
    sums: dict[Atom, int] = {}
    for atom, coefficient in terms:
        sums[atom] = sums.get(atom, 0) + coefficient
    kept = [(atom, c) for atom, c in sums.items() if c]
    if len(kept) > 1:
        kept.sort(key=lambda term: str(term[0]))
    return Form(tuple(kept), constant)


def variable(atom: Atom) -> Form:
    """Return the form that is one atom."""
    return Form(((atom, 1),))


def quotients(form: Form) -> Iterator[Quotient]:
    """Yield all quotients within a form."""
    for atom, _ in form.terms:
        if isinstance(atom, Quotient):
            yield atom
            yield from quotients(atom.dividend)
        elif isinstance(atom, Entry):
            for inner in atom.indices:
                yield from quotients(inner)


def entries(form: Form) -> Iterator[Entry]:
    """Yield all entries of tables within a form."""
    for atom, _ in form.terms:
        if isinstance(atom, Entry):
            yield atom
            for inner in atom.indices:
                yield from entries(inner)
        elif isinstance(atom, Quotient):
            yield from entries(atom.dividend)


def axes_of(atom: Atom) -> Iterator[str]:
    """Yield the axes that an atom's value may depend on, some perhaps more than once."""
    if isinstance(atom, str):
        yield atom
    else:
        for form in [atom.dividend] if isinstance(atom, Quotient) else atom.indices:
            yield from form.axes


def span(form: Form, limits: Limits) -> tuple[int, int] | None:
    """Return the least and the greatest value that the form can be seen to have; None if some entry
    may be anything. Exact where the atoms are axes."""
    low = high = form.constant
    for atom, coefficient in form.terms:
        inner = _atom_span(atom, limits)
        if inner is None:
            return None
        ends = (coefficient * inner[0], coefficient * inner[1])
        low, high = low + min(ends), high + max(ends)
    return low, high


def divided(form: Form, divisor: int, limits: Limits) -> Form:
    """Return ``form // divisor`` for a positive divisor, rounded down."""
    whole = _exactly(form, divisor)
    rest = total(((a, c) for a, c in form.terms if c % divisor), form.constant % divisor)
    if (known := _one_quotient(rest, divisor, limits)) is not None:
        return Form(whole.terms, whole.constant + known)
    for common in sorted({gcd(c, divisor) for _, c in rest.terms} - {1}, reverse=True):
        low = total(((a, c) for a, c in rest.terms if c % common), rest.constant % common)
        if (known := _one_quotient(low, common, limits)) is not None:
            high = _exactly(rest, common)
            high = Form(high.terms, high.constant + known)
            return whole + divided(high, divisor // common, limits)
    match rest:
        case Form(terms=((Quotient(dividend=inner, divisor=before), 1),), constant=0):
            return whole + divided(inner, before * divisor, limits)
    return whole + variable(Quotient(rest, divisor))


def remainder(form: Form, divisor: int, limits: Limits) -> Form:
    """Return ``form % divisor`` for a positive divisor; never negative."""
    return form - divided(form, divisor, limits) * divisor


def _exactly(form: Form, divisor: int) -> Form:
    """Return the terms whose coefficients ``divisor`` divides, and the constant, divided by it."""
    terms = tuple((a, c // divisor) for a, c in form.terms if c % divisor == 0)
    return Form(terms, form.constant // divisor)


def _one_quotient(form: Form, divisor: int, limits: Limits) -> int | None:
    """Return ``form // divisor`` if that is the same number for all values."""
    known = span(form, limits)
    if known is None or known[0] // divisor != known[1] // divisor:
        return None
    return known[0] // divisor


def _atom_span(atom: Atom, limits: Limits) -> tuple[int, int] | None:
    if isinstance(atom, Quotient):
        inner = span(atom.dividend, limits)
        return inner and (inner[0] // atom.divisor, inner[1] // atom.divisor)
    limit = limits.get(atom if isinstance(atom, str) else atom.table)
    return None if limit is None else (0, limit - 1)


def _value(
    atom: Atom, axes: Mapping[str, np.ndarray], tables: Mapping[str, np.ndarray]
) -> np.ndarray:
    if isinstance(atom, str):
        return axes[atom]
    if isinstance(atom, Quotient):
        return atom.dividend.at(axes, tables) // atom.divisor
    table = tables[atom.table]
    indices = [form.at(axes, tables) for form in atom.indices]
    nearest = [np.clip(i, 0, n - 1) for i, n in zip(indices, table.shape, strict=True)]
    return table[tuple(nearest)].astype(np.int64)
