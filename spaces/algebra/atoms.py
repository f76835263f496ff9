"""The atoms of indices: variables, quotients, remainders, entries of tables, and open extents.

Each has the ``span`` of its values, its C text, and its ``formula``: the text in sentences, which
sorts terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.spaces.algebra.index import Index

_ATOMIC = re.compile(r"(\(\w+\))?[\w.]+(\[\w+\])?\Z")

Span = tuple[int | None, int | None]
"""The least and the greatest value that can be seen; None where there may be no such value."""


@dataclass(frozen=True)
class Variable:
    """A C expression, or the name of an axis, with a value in ``range(extent)``.

    Without an extent (None) it is just non-negative. An extent may be an index itself, of extents
    that only the call gives.
    """

    text: str
    extent: int | Index | None = None

    @property
    def span(self) -> Span:
        """The least and the greatest value."""
        known = self.extent
        if known is not None and not isinstance(known, int):
            known = known.extent
        return 0, None if known is None else known - 1

    @property
    def formula(self) -> str:
        """The text in sentences."""
        return self.text


@dataclass(frozen=True)
class Extent:
    """``name / multiple`` for an extent that only the call gives, from ``least`` to ``most``.

    The C expression ``name`` is a multiple of ``multiple``; :func:`extent` makes the index of it.
    """

    name: str
    least: int
    most: int
    multiple: int

    @property
    def span(self) -> Span:
        """The least and the greatest value."""
        return self.least, self.most

    @property
    def text(self) -> str:
        """C text."""
        return self.name if self.multiple == 1 else f"{safe(self.name)} / {self.multiple}"

    @property
    def formula(self) -> str:
        """The text in sentences."""
        return self.name if self.multiple == 1 else f"({self.name})//{self.multiple}"


@dataclass(frozen=True)
class Quotient:
    """``dividend // divisor`` rounded down, not to be simplified further."""

    dividend: Index
    divisor: int

    @cached_property
    def span(self) -> Span:
        """The least and the greatest value."""
        low, high = self.dividend.span
        return _divided(low, self.divisor), _divided(high, self.divisor)

    @property
    def text(self) -> str:
        """C text. C rounds towards zero, so ``tw_quotient`` divides what may be negative."""
        if self.dividend.may_be_negative:
            return f"tw_quotient({self.dividend.text}, {self.divisor})"
        return f"{self.dividend} / {self.divisor}"

    @cached_property
    def formula(self) -> str:
        """The text in sentences."""
        return f"({self.dividend.formula})//{self.divisor}"


@dataclass(frozen=True)
class Remainder:
    """``dividend % divisor`` of a dividend that is not negative, not to be simplified further."""

    dividend: Index
    divisor: int

    @property
    def span(self) -> Span:
        """The least and the greatest value."""
        return 0, self.divisor - 1

    @property
    def text(self) -> str:
        """C text."""
        return f"{self.dividend} % {self.divisor}"

    @property
    def formula(self) -> str:
        """The text in sentences."""
        return f"({self.dividend.formula})%{self.divisor}"


@dataclass(frozen=True)
class Entry:
    """``table[indices]``, a non-negative element of an integer array; ``below`` is more than all
    of them, None if nothing is known. Code replaces it by the variable that it loads."""

    table: str
    indices: tuple[Index, ...]
    below: int | None = None

    @property
    def span(self) -> Span:
        """The least and the greatest value."""
        return (None, None) if self.below is None else (0, self.below - 1)

    @property
    def text(self) -> str:
        """C text; there is none before code says how it loads the entry."""
        raise TypeError(f"{self.formula} must be loaded before it is written")

    @property
    def formula(self) -> str:
        """The text in sentences."""
        return f"{self.table}[{', '.join(index.formula for index in self.indices)}]"


Atom = Variable | Extent | Quotient | Remainder | Entry


def names_of(atom: Atom) -> frozenset[str]:
    """Return the texts of all variables that an atom's value may depend on."""
    if isinstance(atom, Variable):
        return frozenset((atom.text,))
    return frozenset().union(*(inner.names for inner in within(atom)))


def within(atom: Atom) -> tuple[Index, ...]:
    """Return the indices that an atom is computed from."""
    match atom:
        case Quotient(dividend) | Remainder(dividend):
            return (dividend,)
        case Entry():
            return atom.indices
    return ()


def with_inside(atom: Atom, change: Callable[[Index], Index]) -> Atom:
    """Return an atom that is computed from changed indices."""
    match atom:
        case Quotient() | Remainder():
            return replace(atom, dividend=change(atom.dividend))
        case Entry():
            return replace(atom, indices=tuple(map(change, atom.indices)))
    return atom


def term_text(atom: Atom, coefficient: int, wide: str) -> str:
    """Return the C text of a multiple of an atom; ``wide`` ends its coefficient."""
    if isinstance(atom, Extent) and coefficient % atom.multiple == 0:
        times, text = coefficient // atom.multiple, safe(atom.name)
        return text if times == 1 else f"{times}{wide} * {text}"
    return f"{coefficient}{wide} * {safe(atom.text)}"


def safe(text: str) -> str:
    """Return C text in parentheses, unless it is one word."""
    return text if text.isidentifier() or _ATOMIC.match(text) else f"({text})"


def _divided(end: int | None, divisor: int) -> int | None:
    return None if end is None else end // divisor
