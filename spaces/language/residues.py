"""The exact range of an index that divides axes, by the residues of these.

``floor((x + s) / d)`` is ``floor(x / d) + s / d`` where ``d`` divides ``s``. So each axis of an
index has a period: from one point to the one a period further on, all quotients and remainders grow
by the same amounts, whatever the other axes are. The index is then a table over the residues of its
axes, plus a whole multiple of the number of periods of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm, prod

import numpy as np

from tilewright.spaces.language.affine import Affine, affine
from tilewright.spaces.language.evaluation import LARGEST
from tilewright.spaces.language.tree import Binary, Expression

MOST_POINTS = 1 << 16
"""Points of a table of residues; beyond, ranges are not exact."""
Range = tuple[int, int]
"""The least and the greatest value, both included."""
Ranges = tuple[tuple[Expression, Range], ...]


@lru_cache(maxsize=1024)
def exact_range(index: Affine, ranges: Ranges) -> Range | None:
    """Return the least and the greatest value of an index whose axes and entries, independent of
    each other, have these ``ranges``; None if its table would be too large."""
    sizes = [min(_period(index, atom), high - low + 1) for atom, (low, high) in ranges]
    if any(low > high for _, (low, high) in ranges) or prod(sizes) > MOST_POINTS:
        return None
    reach = _reach(index, {atom: max(map(abs, ends)) for atom, ends in ranges})
    if reach >= LARGEST:
        return None
    return _ends(index, ranges, sizes)


def _ends(index: Affine, ranges: Ranges, sizes: Sequence[int]) -> Range:
    """Compute the range from the values at the first period of each axis, and how often each
    residue comes again."""
    points = {
        atom: np.arange(low, low + size).reshape([-1 if i == n else 1 for i in range(len(ranges))])
        for n, ((atom, (low, _)), size) in enumerate(zip(ranges, sizes, strict=True))
    }
    least = greatest = _value(index, points)
    for (atom, (_, high)), size in zip(ranges, sizes, strict=True):
        turns = (high - points[atom]) // size
        moved = int(_rate(index, atom) * size) * turns
        least, greatest = least + np.minimum(moved, 0), greatest + np.maximum(moved, 0)
    return int(np.min(least)), int(np.max(greatest))


def _value(index: Affine, points: Mapping[Expression, np.ndarray]) -> np.ndarray:
    result = np.asarray(index.constant, np.int64)
    for atom, coefficient in index.terms:
        result = result + coefficient * _atom(atom, points)
    return result


def _atom(atom: Expression, points: Mapping[Expression, np.ndarray]) -> np.ndarray:
    if atom in points or not isinstance(atom, Binary):
        return points[atom]
    inner, divisor = _value(affine(atom.left), points), affine(atom.right).constant
    return inner // divisor if atom.operator == "//" else inner % divisor


def _reach(index: Affine, known: Mapping[Expression, int]) -> int:
    """Return a bound on the magnitude of all values on the way."""
    total = abs(index.constant)
    for atom, coefficient in index.terms:
        inner = known.get(atom, 0)
        if isinstance(atom, Binary):
            inner = _reach(affine(atom.left), known) + affine(atom.right).constant
        total += abs(coefficient) * inner
    return total


def _rate(index: Affine, axis: Expression) -> Fraction:
    """Say by how much an index grows in the mean from one point of an axis to the next."""
    return sum((c * _rate_of_atom(atom, axis) for atom, c in index.terms), Fraction(0))


def _rate_of_atom(atom: Expression, axis: Expression) -> Fraction:
    if atom == axis:
        return Fraction(1)
    if isinstance(atom, Binary) and atom.operator == "//":
        return _rate(affine(atom.left), axis) / affine(atom.right).constant
    return Fraction(0)


def _period(index: Affine, axis: Expression) -> int:
    """Return the least number of points of an axis by which every quotient and remainder within an
    index grows by a whole number."""
    found = 1
    for atom, _ in index.terms:
        if isinstance(atom, Binary):
            inner = affine(atom.left)
            share = _rate(inner, axis) / affine(atom.right).constant
            found = lcm(found, _period(inner, axis), share.denominator)
    return found
