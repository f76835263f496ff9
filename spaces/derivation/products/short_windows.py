"""Sums over short windows with fewer multiplications, by the algorithm of Toom and Cook: as few as
there can be (Winograd, Arithmetic Complexity of Computations, 1980).

``outputs`` neighbours that are sums of ``taps`` products each read ``outputs + taps - 1`` elements
d, and the taps g are the same for all of them. Polynomials of such degrees are multiplied by their
values at as many points:

    y = output * ((taps g) .* (image d))

with a matrix of small constants for each of the three, and ``.*`` element by element. Along two
axes, each matrix is applied to the rows and then to the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm, prod

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]

POINTS = (Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(-1, 2))
"""Says where polynomials are evaluated, beside infinity, as many as are needed: with small powers
of two and their reciprocals, errors grow least (Barabasz, Anderson, Soodhalter and Gregg, Error
Analysis and Improving the Accuracy of Winograd Convolution, ACM TOMS 46(4), 2020)."""
MOST_READS = len(POINTS) + 1


@dataclass(frozen=True)
class ShortWindows:
    """``outputs`` neighbours, each of a window of ``taps`` elements; both together read no more
    than :data:`MOST_READS`."""

    outputs: int
    taps: int

    @property
    def reads(self) -> int:
        """Elements that the windows reach together, and multiplications."""
        return self.outputs + self.taps - 1

    @cached_property
    def image(self) -> Matrix:
        """(reads, reads): what is done to elements. Whole numbers."""
        return tuple(tuple(c * scale for c in row) for row, scale in self._scaled)

    @cached_property
    def filter(self) -> Matrix:
        """(reads, taps): what is done to the taps."""
        last = tuple(Fraction(k == self.taps - 1) for k in range(self.taps))
        rows = []
        for point in self._points:
            others = prod(point - other for other in self._points if other != point)
            rows.append(tuple(point**k / others for k in range(self.taps)))
        scales = (scale for _, scale in self._scaled)
        return tuple(
            tuple(c / scale for c in row) for row, scale in zip((*rows, last), scales, strict=True)
        )

    @cached_property
    def output(self) -> Matrix:
        """(outputs, reads): what is done to the products."""
        return tuple(
            (*(point**i for point in self._points), Fraction(i == self.outputs - 1))
            for i in range(self.outputs)
        )

    @cached_property
    def growth(self) -> float:
        """The variance of the least exact output's error over that of one product's, where errors
        of products are independent and as large as the factors' magnitudes have it."""
        pairs = list(zip(self.filter, self.image, strict=True))
        variances = [_square(taps) * _square(image) for taps, image in pairs]
        return max(
            float(sum(c * c * v for c, v in zip(row, variances, strict=True)))
            for row in self.output
        )

    @property
    def _points(self) -> tuple[Fraction, ...]:
        return POINTS[: self.reads - 1]

    @property
    def _scaled(self) -> list[tuple[Row, int]]:
        """Coefficients of the polynomials that are zero at all points but one, then at all; each
        with the number that makes them whole."""
        rows = [
            (*_with_zeros([other for other in self._points if other != point]), Fraction(0))
            for point in self._points
        ]
        rows.append(_with_zeros(self._points))
        return [(row, lcm(*(c.denominator for c in row))) for row in rows]


@lru_cache(maxsize=64)
def short_windows(outputs: int, taps: int) -> ShortWindows:
    """Return the same matrices for the same numbers, made once."""
    return ShortWindows(outputs, taps)


def _with_zeros(points: Sequence[Fraction]) -> Row:
    """Return the coefficients of the polynomial with these zeros, the constant first."""
    found = [Fraction(1)]
    for point in points:
        shifted, scaled = [Fraction(0), *found], [*(c * point for c in found), Fraction(0)]
        found = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return tuple(found)


def _square(row: Row) -> Fraction:
    return sum((c * c for c in row), Fraction(0))
