"""Indices: sums of multiples of axes whose ranges are known, so that `//` and `%` fold away."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Atom:
    """An axis, or any other text of a whole number, with its least and greatest value. A quotient
    or a remainder has its ``dividend`` and ``divisor``; ``rest`` tells that it is a remainder."""

    text: str
    least: int
    greatest: int
    dividend: Index | None = field(default=None, compare=False)
    divisor: int = field(default=1, compare=False)
    rest: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Index:
    """``constant`` plus the sum of each atom times its factor. Two equal sums may differ in the
    order of their terms."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, text: str, least: int, greatest: int) -> Index:
        """Return the index that an atom is; a constant if it has one value."""
        return cls._of(Atom(text, least, greatest))

    @classmethod
    def _of(cls, atom: Atom) -> Index:
        return cls((), atom.least) if atom.least == atom.greatest else cls(((atom, 1),))

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other)
        return _summed((*self.terms, *other.terms), self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        return _summed([(a, c * factor) for a, c in self.terms], self.constant * factor)

    @property
    def range(self) -> tuple[int, int]:
        """A lower and an upper bound, both inclusive."""
        ends = [sorted((c * a.least, c * a.greatest)) for a, c in self.terms]
        least, greatest = sum(low for low, _ in ends), sum(high for _, high in ends)
        return self.constant + least, self.constant + greatest

    def within(self, extent: int) -> bool:
        """Tell whether it is sure to be an index of ``extent`` elements."""
        least, greatest = self.range
        return least >= 0 and greatest < extent

    @property
    def atom(self) -> Atom | None:
        """The atom that it is, if it is one and nothing else."""
        if self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    def __floordiv__(self, divisor: int) -> Index:
        whole, rest = self._parted(divisor)
        if rest.within(divisor):
            return whole
        if outer := rest._outer(divisor):
            high, _, step = outer
            return whole + high // (divisor // step)
        least, greatest = rest.range
        text = f"(({rest}) // {divisor})"
        return whole + Index._of(Atom(text, least // divisor, greatest // divisor, rest, divisor))

    def __mod__(self, divisor: int) -> Index:
        if self.within(divisor):
            return self
        _, rest = self._parted(divisor)
        if rest.within(divisor):
            return rest
        if outer := rest._outer(divisor):
            high, low, step = outer
            return high % (divisor // step) * step + low
        text = f"(({rest}) % {divisor})"
        return Index._of(Atom(text, 0, divisor - 1, rest, divisor, rest=True))

    def _parted(self, divisor: int) -> tuple[Index, Index]:
        """Divide all terms that ``divisor`` divides, and return them and the remaining ones."""
        quotient = tuple((a, c // divisor) for a, c in self.terms if c % divisor == 0)
        rest = tuple((a, c) for a, c in self.terms if c % divisor)
        above, below = divmod(self.constant, divisor)
        return Index(quotient, above), Index(rest, below)

    def _outer(self, divisor: int) -> tuple[Index, Index, int] | None:
        """Return ``high``, ``low`` and ``step``, where this is ``step * high + low``, ``low`` is
        below ``step``, and ``step`` divides ``divisor``."""
        steps = {c for _, c in self.terms if 1 < c < divisor and divisor % c == 0}
        for step in sorted(steps, reverse=True):
            high, low = self._parted(step)
            if low.within(step):
                return high, low, step
        return None

    def __str__(self) -> str:
        parts = [_term(atom.text, factor) for atom, factor in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


Indices = Sequence[Index]


def _summed(terms: Iterable[tuple[Atom, int]], constant: int) -> Index:
    factors: dict[Atom, int] = {}
    for atom, factor in terms:
        factors[atom] = factors.get(atom, 0) + factor
    found = Index(tuple((atom, factor) for atom, factor in factors.items() if factor), constant)
    return _rejoined(found, factors)


def _rejoined(index: Index, factors: Mapping[Atom, int]) -> Index:
    """Return the sum with ``c * d * (e // d) + c * (e % d)`` put together again as ``c * e``."""
    for atom, factor in index.terms:
        if not atom.rest or atom.dividend is None:
            continue
        quotient = _quotient(atom.dividend, atom.divisor).atom
        if quotient is not None and factors.get(quotient) == factor * atom.divisor:
            others = Index(tuple(t for t in index.terms if t[0] not in (atom, quotient)))
            return others + atom.dividend * factor + index.constant
    return index


def _quotient(index: Index, divisor: int) -> Index:
    """Return ``index // divisor``, of a quotient as that of its own dividend."""
    atom = index.atom
    if atom is not None and atom.dividend is not None and not atom.rest:
        return _quotient(atom.dividend, atom.divisor * divisor)
    return index // divisor


def _term(text: str, factor: int) -> str:
    return text if factor == 1 else f"{factor} * {text}"


def merged(indices: Indices, shape: Sequence[int]) -> Index:
    """Return the number of an element, counted row by row."""
    number, step = Index(), 1
    for index, extent in zip(reversed(indices), reversed(shape), strict=True):
        number, step = number + index * step, step * extent
    return number


def split(number: Index, shape: Sequence[int]) -> list[Index]:
    """Return the indices of the element that has this number; those of a number beyond the last
    element are beyond the border of the outermost dimension."""
    found: list[Index] = []
    step, count = 1, math.prod(shape)
    for extent in reversed(shape):
        index = number // step if step * extent == count else number // step % extent
        found.append(Index() if extent == 1 else index)
        step *= extent
    return found[::-1]


def reshaped(indices: Indices, shape: Sequence[int], to: Sequence[int]) -> list[Index]:
    """Return the indices in an array of shape ``to`` of an element of one of ``shape``.

    Each depends on as few of those as possible, so that one beyond its border leaves the others as
    they are.
    """
    return [
        index
        for own, new in _blocks(shape, to)
        for index in split(merged(indices[own], shape[own]), to[new])
    ]


def _blocks(shape: Sequence[int], to: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Yield the shortest runs of dimensions of two shapes that hold equally many elements."""
    own = new = 0
    while own < len(shape) or new < len(to):
        start, left, right = (own, new), 1, 1
        while start == (own, new) or left != right:
            if new == len(to) or (own < len(shape) and left <= right):
                left, own = left * shape[own], own + 1
            else:
                right, new = right * to[new], new + 1
        yield slice(start[0], own), slice(start[1], new)


def leaves(indices: Indices, shape: Sequence[int]) -> bool:
    """Tell whether any index may be beyond the borders of an array."""
    return not all(i.within(extent) for i, extent in zip(indices, shape, strict=True))


def borders(indices: Indices, shape: Sequence[int]) -> list[str]:
    """Return the conditions under which all indices are within the borders, those that always hold
    left out."""
    found = []
    for index, extent in zip(indices, shape, strict=True):
        least, greatest = index.range
        found += [f"{index} >= 0"] if least < 0 else []
        found += [f"{index} < {extent}"] if greatest >= extent else []
    return found
